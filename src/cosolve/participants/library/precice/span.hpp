// A view of consecutive values: the argument type of the participant interface.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace precice {

inline constexpr std::size_t dynamic_extent = static_cast<std::size_t>(-1);

template <class T, std::size_t Extent = dynamic_extent> class span {
public:
  constexpr span() noexcept = default;
  constexpr span(T *first, std::size_t count) noexcept : data_(first), size_(count) {}
  template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(length(array, N)) {}
  template <class C, class = decltype(std::declval<C &>().size()),
            class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C &>().data()), T *>>>
  constexpr span(C &&container) noexcept : data_(container.data()), size_(container.size()) {}
  // a pointer to text; not an array, as literals are: both would do for these
  template <class P, std::enable_if_t<std::is_pointer_v<P> && std::is_convertible_v<P, const char *> &&
                                          std::is_same_v<T, const char>, int> = 0>
  span(const P &text) noexcept : data_(text), size_(std::strlen(text)) {}

  constexpr T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T &operator[](std::size_t k) const { return data_[k]; }
  constexpr T *begin() const noexcept { return data_; }
  constexpr T *end() const noexcept { return data_ + size_; }

private:
  static constexpr std::size_t length(T *array, std::size_t n) {  // a literal ends with a zero that is not meant
    if constexpr (std::is_same_v<T, const char>)
      return n && array[n - 1] == '\0' ? n - 1 : n;
    else
      return n;
  }
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

using string_view = span<const char>;

}  // namespace precice
