// The client of `cosolve_participant.hpp`: records over a stream socket, samples of a window, splines through them.
// The records are written down in docs/architecture/participants.md; client.py is the same client in Python.
#include "cosolve_participant.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cosolve {
namespace {

constexpr std::uint32_t protocol = 1;
constexpr std::uint32_t magic = 0x4C4F5300u + protocol;
constexpr std::uint64_t largest = std::uint64_t(1) << 34;
constexpr double nearly = 1e-12;  // times that differ by less than this fraction of the window are the same

enum Kind : std::uint32_t { hello = 1, begin = 2, step_done = 3, goodbye = 4, map = 5 };
enum Answer : std::uint32_t { contract = 65, state = 66, mapped = 67, failed = 68 };
enum MeshFlag : std::uint32_t { provided = 1, direct = 4, cells_wanted = 8 };
enum DataFlag : std::uint32_t { written = 1, readable = 2, initial = 4, gradient = 8, just_in_time = 16 };
enum StateFlag : std::uint32_t { is_ongoing = 1, complete = 2, must_save_now = 4, must_restore_now = 8, leads = 16 };
constexpr std::uint32_t wants_substeps = 1;

using Bytes = std::vector<unsigned char>;
using Doubles = std::vector<double>;

// -- records: little-endian fields without gaps ------------------------------------------------------------------

static_assert(sizeof(double) == 8, "doubles of eight bytes");

bool little_endian() {
  const std::uint16_t one = 1;
  unsigned char first;
  std::memcpy(&first, &one, 1);
  return first == 1;
}

class Packer {
public:
  Bytes bytes;
  void raw(const void *at, std::size_t size) {
    const auto *from = static_cast<const unsigned char *>(at);
    bytes.insert(bytes.end(), from, from + size);
  }
  void whole(std::uint32_t value) { raw(&value, 4); }
  void text(const std::string &value) {
    whole(std::uint32_t(value.size()));
    raw(value.data(), value.size());
  }
  void doubles(const Doubles &values) { raw(values.data(), 8 * values.size()); }
  void array(const Doubles &values) {
    whole(std::uint32_t(values.size()));
    doubles(values);
  }
  void numbers(const std::vector<std::uint32_t> &values) {
    whole(std::uint32_t(values.size()));
    raw(values.data(), 4 * values.size());
  }
};

class Unpacker {
public:
  explicit Unpacker(Bytes data) : data_(std::move(data)) {}
  std::uint32_t whole() {
    std::uint32_t value;
    take(&value, 4);
    return value;
  }
  double real() {
    double value;
    take(&value, 8);
    return value;
  }
  std::string text() {
    std::string value(checked(whole(), 1), '\0');
    take(&value[0], value.size());
    return value;
  }
  Doubles doubles(std::size_t count) {
    Doubles values(checked(count, 8));
    take(values.data(), 8 * count);
    return values;
  }
  Doubles array() { return doubles(whole()); }

private:
  std::size_t checked(std::size_t count, std::size_t size) const {  // before memory is asked for
    if (count > (data_.size() - at_) / size) throw ParticipantError("a record ended too early");
    return count;
  }
  void take(void *to, std::size_t size) {
    if (size > data_.size() - at_) throw ParticipantError("a record ended too early");
    if (size) std::memcpy(to, data_.data() + at_, size);
    at_ += size;
  }
  Bytes data_;
  std::size_t at_ = 0;
};

// Looks for a moment, giving way to other processes, before it sleeps: on a quiet machine a core that falls asleep takes
// longer to wake than a window takes. Where answers take long, or others want the core, it sleeps at once (client.py).
class SpinThenBlock {
public:
  void wait(int handle) {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    auto now = began;
    if (doubt_) {
      --doubt_;
    } else if (patient_) {
      while (now - began < std::chrono::microseconds(200)) {
        if (there(handle, 0)) {
          doubts_ = std::max(doubts_ - 1, 64);
          return;
        }
        std::this_thread::yield();
        const auto then = now;
        now = Clock::now();
        if (now - then > std::chrono::microseconds(100)) {
          doubt_ = doubts_;
          doubts_ = std::min(2 * doubts_, 4096);
          break;
        }
      }
    }
    there(handle, -1);
    patient_ = several_ && Clock::now() - began < std::chrono::milliseconds(1);
  }

private:
  static bool there(int handle, int limit) {
    pollfd one{handle, POLLIN, 0};
    return ::poll(&one, 1, limit) != 0;  // errors are found when reading
  }
  const bool several_ = std::thread::hardware_concurrency() > 1;
  bool patient_ = several_;
  int doubt_ = 0, doubts_ = 64;  // waits that sleep at once: still, and the next time
};

class Line {  // whole records over a stream socket
public:
  explicit Line(int handle) : handle_(handle) {}
  ~Line() { close(); }
  Line(const Line &) = delete;
  Line &operator=(const Line &) = delete;

  bool open() const { return handle_ >= 0; }
  void close() {
    if (handle_ >= 0) ::close(handle_);
    handle_ = -1;
  }
  bool send(std::uint32_t kind, const Bytes &content) {
    Packer head;
    head.whole(magic);
    head.whole(kind);
    const std::uint64_t length = content.size();
    head.raw(&length, 8);
    head.raw(content.data(), content.size());  // one piece, so that one packet may do
    return all(head.bytes.data(), head.bytes.size());
  }
  bool receive(std::uint32_t &kind, Bytes &content) {
    std::uint32_t first;
    std::uint64_t length;
    unsigned char head[16];
    spin_.wait(handle_);
    if (!fill(head, 16)) return false;
    std::memcpy(&first, head, 4);
    std::memcpy(&kind, head + 4, 4);
    std::memcpy(&length, head + 8, 8);
    if (first != magic || length > largest)
      throw ParticipantError("what arrived is no record of this protocol; client and hub are of different versions");
    content.clear();
    while (content.size() < length) {  // in pieces: a length alone must not take all memory
      const std::size_t piece = std::min<std::uint64_t>(length - content.size(), std::uint64_t(1) << 24);
      const std::size_t at = content.size();
      content.resize(at + piece);
      if (!fill(content.data() + at, piece)) return false;
    }
    return true;
  }

private:
  bool all(const unsigned char *from, std::size_t size) {
    while (size) {
      const ssize_t sent = ::send(handle_, from, size, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      from += sent;
      size -= std::size_t(sent);
    }
    return true;
  }
  bool fill(unsigned char *to, std::size_t size) {
    while (size) {
      const ssize_t got = ::recv(handle_, to, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      to += got;
      size -= std::size_t(got);
    }
    return true;
  }
  int handle_;
  SpinThenBlock spin_;
};

int unix_socket(const std::string &path) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (path.size() >= sizeof where.sun_path) throw ParticipantError("the path of the hub is too long: " + path);
  std::memcpy(where.sun_path, path.c_str(), path.size() + 1);
  const int handle = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle >= 0 && ::connect(handle, reinterpret_cast<sockaddr *>(&where), sizeof where) == 0) return handle;
  if (handle >= 0) ::close(handle);
  return -1;
}

int tcp_socket(const std::string &host, const std::string &port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return -1;
  int handle = -1;
  for (addrinfo *one = found; one && handle < 0; one = one->ai_next) {
    handle = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (handle >= 0 && ::connect(handle, one->ai_addr, one->ai_addrlen) != 0) {
      ::close(handle);
      handle = -1;
    }
  }
  ::freeaddrinfo(found);
  const int yes = 1;
  if (handle >= 0) ::setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return handle;
}

int connected(const std::string &address, double patience) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  while (true) {
    int handle;
    if (address.rfind("unix:", 0) == 0) {
      handle = unix_socket(address.substr(5));
    } else if (address.rfind("tcp:", 0) == 0 && address.rfind(':') > 3) {
      const std::size_t colon = address.rfind(':');
      handle = tcp_socket(address.substr(4, colon - 4), address.substr(colon + 1));
    } else {
      throw ParticipantError("the address of a hub is unix:PATH or tcp:HOST:PORT, not '" + address + "'");
    }
    if (handle >= 0) return handle;
    if (std::chrono::steady_clock::now() > end)
      throw ParticipantError("no hub answers at " + address + "; start it first");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// -- waveforms ---------------------------------------------------------------------------------------------------

Doubles basis(const Doubles &knots, int p, int n, double x) {  // all B-splines of degree p at x (de Boor)
  int k = p;
  while (k < n - 1 && x >= knots[k + 1]) ++k;
  Doubles column{1.0};
  for (int d = 1; d <= p; ++d) {
    Doubles longer(d + 1, 0.0);
    for (int r = 0; r < d; ++r) {
      const double left = knots[k - d + 1 + r], right = knots[k + 1 + r], share = column[r] / (right - left);
      longer[r] += (right - x) * share;
      longer[r + 1] += (x - left) * share;
    }
    column = longer;
  }
  Doubles values(n, 0.0);
  std::copy(column.begin(), column.end(), values.begin() + (k - p));
  return values;
}

Doubles solved(std::vector<Doubles> A, Doubles b) {  // elimination with pivots; few unknowns
  const int n = int(b.size());
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(A[i][k]) > std::abs(A[pivot][k])) pivot = i;
    std::swap(A[k], A[pivot]);
    std::swap(b[k], b[pivot]);
    for (int i = k + 1; i < n; ++i) {
      const double factor = A[i][k] / A[k][k];
      for (int j = k; j < n; ++j) A[i][j] -= factor * A[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    for (int j = k + 1; j < n; ++j) b[k] -= A[k][j] * b[j];
    b[k] /= A[k][k];
  }
  return b;
}

// The factors of the samples in the B-spline of `degree` through them, at t; interior knots are averaged times.
Doubles spline_weights(const Doubles &T, int degree, double t) {
  const int n = int(T.size());
  Doubles weights(n, 0.0);
  int nearest = 0;
  for (int k = 1; k < n; ++k)
    if (std::abs(T[k] - t) < std::abs(T[nearest] - t)) nearest = k;
  const double slack = nearly * std::max(T[n - 1] - T[0], std::abs(T[n - 1]) * 1e-3);
  if (n == 1 || std::abs(T[nearest] - t) <= slack) {
    weights[nearest] = 1.0;
    return weights;
  }
  const int p = std::min(degree, n - 1);
  const int above = int(std::lower_bound(T.begin(), T.end(), t) - T.begin());
  if (p == 0) {  // the next sample
    weights[std::min(above, n - 1)] = 1.0;
    return weights;
  }
  if (p == 1) {
    const int k = std::min(std::max(above, 1), n - 1);
    const double s = (t - T[k - 1]) / (T[k] - T[k - 1]);
    weights[k - 1] = 1.0 - s;
    weights[k] = s;
    return weights;
  }
  Doubles s(n), knots(p + 1, 0.0);
  for (int k = 0; k < n; ++k) s[k] = (T[k] - T[0]) / (T[n - 1] - T[0]);
  for (int j = 1; j < n - p; ++j) {
    double sum = 0.0;
    for (int k = j; k < j + p; ++k) sum += s[k];
    knots.push_back(sum / p);
  }
  knots.insert(knots.end(), p + 1, 1.0);
  std::vector<Doubles> A(n, Doubles(n));
  for (int i = 0; i < n; ++i) {
    const Doubles row = basis(knots, p, n, s[i]);
    for (int j = 0; j < n; ++j) A[j][i] = row[j];
  }
  return solved(A, basis(knots, p, n, (t - T[0]) / (T[n - 1] - T[0])));
}

struct Data;

struct Mesh {
  std::string name;
  int dimensions = 0;
  std::uint32_t flags = 0;
  Doubles points, region;
  std::array<std::vector<std::uint32_t>, 4> cells;
  std::vector<Data> data;
  std::size_t count() const { return points.size() / std::size_t(dimensions); }
};

struct Data {
  std::string name;
  int components = 1;
  std::uint32_t flags = 0;
  int degree = 1;
  Doubles buffer, gradient, times, samples;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

struct Participant::Inside {
  std::string name;
  std::unique_ptr<Line> line;
  std::vector<Mesh> meshes;
  std::uint32_t rules = 0, flags = is_ongoing;
  bool started = false, saving_asked = true, restoring_asked = true;
  double time = 0.0, progress = 0.0, remaining = 0.0, window = 0.0;
  std::uint32_t sample_count = 0;
  Packer samples;

  [[noreturn]] void refuse(const std::string &why) const { throw ParticipantError(name + ": " + why); }

  Mesh &mesh(const std::string &wanted) {
    std::string known;
    for (Mesh &one : meshes) {
      if (one.name == wanted) return one;
      known += (known.empty() ? "" : ", ") + one.name;
    }
    refuse("has no mesh '" + wanted + "'; its meshes are " + (known.empty() ? "none" : known));
  }
  Data &data(Mesh &mesh, const std::string &wanted) const {
    std::string known;
    for (Data &one : mesh.data) {
      if (one.name == wanted) return one;
      known += (known.empty() ? "" : ", ") + one.name;
    }
    refuse("has no data '" + wanted + "' on mesh '" + mesh.name + "'; there are " + (known.empty() ? "none" : known));
  }
  Data &writable(Mesh &mesh, const std::string &wanted) const {
    Data &found = data(mesh, wanted);
    if (!(found.flags & written)) refuse("does not write data '" + wanted + "' on mesh '" + mesh.name + "'");
    return found;
  }
  void refuse_after_start(const std::string &why) const {
    if (started) refuse(why);
  }

  Unpacker ask(std::uint32_t kind, const Bytes &content, std::uint32_t expected) {
    if (!line || !line->open()) refuse("has finished already");
    line->send(kind, content);  // where that fails, the hub may have said why before it went
    std::uint32_t got = 0;
    Bytes answer;
    if (!line->receive(got, answer)) {
      line->close();
      refuse("the hub is gone");
    }
    if (got == failed) {
      line->close();
      refuse(Unpacker(std::move(answer)).text());
    }
    if (got != expected) {
      line->close();
      refuse("the hub sent a record of kind " + std::to_string(got) + " where " + std::to_string(expected) + " was due");
    }
    return Unpacker(std::move(answer));
  }

  static void clear(const Mesh &mesh, Data &one) {
    one.buffer.assign(mesh.count() * std::size_t(one.components), 0.0);
    if (one.flags & gradient) one.gradient.assign(one.buffer.size() * std::size_t(mesh.dimensions), 0.0);
  }
  template <class Do> void for_written(Do what) {
    for (Mesh &one : meshes)
      for (Data &some : one.data)
        if (some.flags & written) what(one, some);
  }
  static void content(Packer &packer, const Data &some) {
    packer.doubles(some.buffer);
    if (some.flags & gradient) packer.doubles(some.gradient);
  }

  void arrive(Unpacker &answer) {  // where the hub says we stand, and what can be read there
    flags = answer.whole();
    time = answer.real();
    remaining = answer.real();
    window = remaining;
    progress = 0.0;
    saving_asked = restoring_asked = false;
    for (Mesh &one : meshes)
      for (Data &some : one.data)
        if (some.flags & readable) {
          const std::uint32_t count = answer.whole();
          some.times = answer.doubles(count);
          some.samples = answer.doubles(std::size_t(count) * one.count() * std::size_t(some.components));
        }
  }

  double room() const { return flags & is_ongoing ? remaining - progress : 0.0; }

  Doubles sampled(const Mesh &mesh, const Data &some, double after) const {
    if (!(some.flags & readable)) refuse("does not read data '" + some.name + "' on mesh '" + mesh.name + "'");
    if (!started) refuse("nothing can be read before the start");
    const double slack = nearly * std::max(window, std::abs(after));
    if (!(after >= -slack && after <= room() + slack))
      refuse("data '" + some.name + "' are known for the next " + number(room()) + " s, not " + number(after) +
             " s from now");
    const std::size_t n = some.times.size(), size = mesh.count() * std::size_t(some.components);
    const Doubles weights = n == 1 ? Doubles{1.0} : spline_weights(some.times, some.degree, time + progress + after);
    Doubles values(size, 0.0);
    const std::size_t used = std::size_t(n) - std::size_t(std::count(weights.begin(), weights.end(), 0.0));
    for (std::size_t k = 0; k < n; ++k) {
      if (weights[k] == 0.0) continue;
      const double *from = some.samples.data() + k * size;
      for (std::size_t j = 0; j < size; ++j) values[j] = used == 1 ? from[j] : values[j] + weights[k] * from[j];
    }
    return values;
  }

  void refuse_bad_number(const Mesh &mesh, int k) const {
    if (k < 0 || std::size_t(k) >= mesh.count())
      refuse("mesh '" + mesh.name + "' has the points 0 to " + std::to_string(long(mesh.count()) - 1) + ", not " +
             std::to_string(k));
  }
  void refuse_infinite(const Mesh &mesh, const Data &some, std::size_t count, const double *values) const {
    for (std::size_t k = 0; k < count; ++k)
      if (!std::isfinite(values[k]))
        refuse("data '" + some.name + "' on mesh '" + mesh.name + "' at t = " + number(time + progress) +
               " would hold a NaN or an infinity");
  }
  void put(Mesh &mesh, Data &some, Doubles &into, std::size_t width, std::size_t count, const int *points,
           const double *values) const {
    if (!points && count != mesh.count())
      refuse("mesh '" + mesh.name + "' has " + std::to_string(mesh.count()) + " points, not " + std::to_string(count));
    refuse_infinite(mesh, some, count * width, values);
    for (std::size_t k = 0; k < count; ++k) {
      if (points) refuse_bad_number(mesh, points[k]);
      std::copy_n(values + k * width, width, into.data() + (points ? std::size_t(points[k]) : k) * width);
    }
  }

  Doubles mapped_values(const Mesh &mesh, const Data &some, bool loads, std::size_t count, const double *coordinates,
                        const Doubles &values) {
    if (!(some.flags & just_in_time) || !started)
      refuse("there is no mapping on the spot for data '" + some.name + "' on mesh '" + mesh.name + "'");
    if (count == 0) return Doubles(loads ? mesh.count() * std::size_t(some.components) : 0, 0.0);
    Packer packer;
    packer.text(mesh.name);
    packer.text(some.name);
    packer.whole(loads ? 1 : 0);
    packer.array(Doubles(coordinates, coordinates + count * std::size_t(mesh.dimensions)));
    packer.array(values);
    return ask(map, packer.bytes, mapped).array();
  }

  void halve(Mesh &mesh, const int *corner) {  // a quadrilateral, corners in any order, along its shorter diagonal
    std::array<std::array<double, 3>, 4> x{};
    for (int k = 0; k < 4; ++k)
      for (int d = 0; d < mesh.dimensions; ++d) x[k][d] = mesh.points[std::size_t(corner[k] * mesh.dimensions + d)];
    const auto minus = [&](int a, int b) {
      return std::array<double, 3>{x[a][0] - x[b][0], x[a][1] - x[b][1], x[a][2] - x[b][2]};
    };
    const auto cross = [](const std::array<double, 3> &a, const std::array<double, 3> &b) {
      return std::array<double, 3>{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    };
    const auto dot = [](const std::array<double, 3> &a, const std::array<double, 3> &b) {
      return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    };
    const int orders[3][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}};
    for (const auto &o : orders) {
      std::array<std::array<double, 3>, 4> turn;
      double size = 0.0;  // of the largest turn, squared
      for (int k = 0; k < 4; ++k) {
        turn[k] = cross(minus(o[(k + 1) % 4], o[k]), minus(o[(k + 2) % 4], o[(k + 1) % 4]));
        size = std::max(size, dot(turn[k], turn[k]));
      }
      bool convex = size > 0.0;
      for (int k = 0; k < 4; ++k) convex = convex && dot(turn[0], turn[k]) > 1e-10 * size;
      if (!convex) continue;
      const double apart = std::abs(dot(cross(minus(o[1], o[0]), minus(o[2], o[0])), minus(o[3], o[0])));
      if (apart > 1e-6 * std::pow(size, 0.75)) break;
      const std::uint32_t a = corner[o[0]], b = corner[o[1]], c = corner[o[2]], d = corner[o[3]];
      auto &into = mesh.cells[1];
      if (dot(minus(o[0], o[2]), minus(o[0], o[2])) <= dot(minus(o[1], o[3]), minus(o[1], o[3])))
        into.insert(into.end(), {a, b, c, a, c, d});
      else
        into.insert(into.end(), {a, b, d, b, c, d});
      return;
    }
    refuse("a quadrilateral of mesh '" + mesh.name + "' is not plane and convex; give triangles");
  }
};

Participant::Participant(const std::string &name, const std::string &address, double patience, int rank, int size)
    : inside_(new Inside) {
  inside_->name = name;
  if (rank < 0 || rank >= size)
    inside_->refuse("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                    " processes; ranks are 0 to the number minus one");
  if (!little_endian()) inside_->refuse("this machine stores numbers the other way round, which is not offered");
  std::string place = address;
  if (place.empty()) {
    const char *left = std::getenv("COSOLVE_HUB");
    place = left ? left : "";
  }
  if (place.empty()) inside_->refuse("no hub: give its address, or let the hub start this process (COSOLVE_HUB)");
  const std::size_t blank = place.find(' ');
  const std::string token = blank == std::string::npos ? "" : place.substr(blank + 1);
  inside_->line.reset(new Line(connected(place.substr(0, blank), patience)));
  Packer packer;
  packer.whole(protocol);
  packer.text(token);
  packer.text(name);
  std::vector<char> folder(1 << 14);
  packer.text(::getcwd(folder.data(), folder.size()) ? folder.data() : "");
  packer.whole(std::uint32_t(::getpid()));
  packer.whole(std::uint32_t(rank));
  packer.whole(std::uint32_t(size));
  Unpacker answer = inside_->ask(hello, packer.bytes, contract);
  inside_->rules = answer.whole();
  const std::uint32_t meshes = answer.whole();
  for (std::uint32_t m = 0; m < meshes; ++m) {
    Mesh mesh;
    mesh.name = answer.text();
    mesh.dimensions = int(answer.whole());
    if (mesh.dimensions < 1 || mesh.dimensions > 3) inside_->refuse("the hub sent a mesh without dimensions");
    mesh.flags = answer.whole();
    const std::uint32_t count = answer.whole();
    for (std::uint32_t d = 0; d < count; ++d) {
      Data some;
      some.name = answer.text();
      some.components = int(answer.whole());
      some.flags = answer.whole();
      some.degree = int(answer.whole());
      mesh.data.push_back(std::move(some));
    }
    inside_->meshes.push_back(std::move(mesh));
  }
}

Participant::~Participant() {
  if (inside_) finish();
}
Participant::Participant(Participant &&) noexcept = default;
Participant &Participant::operator=(Participant &&) noexcept = default;

int Participant::dimensions(const std::string &mesh) const { return inside_->mesh(mesh).dimensions; }

int Participant::components(const std::string &mesh, const std::string &data) const {
  return inside_->data(inside_->mesh(mesh), data).components;
}

int Participant::set_points(const std::string &mesh, std::size_t count, const double *points) {
  Mesh &found = inside_->mesh(mesh);
  if (!(found.flags & provided))
    inside_->refuse("mesh '" + mesh + "' is received from another participant, which sets its points");
  inside_->refuse_after_start("the points of mesh '" + mesh + "' can be set only before the start");
  const std::size_t size = count * std::size_t(found.dimensions);
  for (std::size_t k = 0; k < size; ++k)
    if (!std::isfinite(points[k])) inside_->refuse("a point of mesh '" + mesh + "' is not finite");
  const std::size_t first = found.count();
  found.points.insert(found.points.end(), points, points + size);
  for (Data &some : found.data) {
    some.buffer.resize(found.count() * std::size_t(some.components), 0.0);
    if (some.flags & gradient) some.gradient.resize(some.buffer.size() * std::size_t(found.dimensions), 0.0);
  }
  return int(first);
}

bool Participant::needs_cells(const std::string &mesh) const { return inside_->mesh(mesh).flags & cells_wanted; }

void Participant::set_cells(const std::string &mesh, Cell kind, std::size_t count, const int *corners) {
  static const char *const names[] = {"line", "triangle", "quadrilateral", "tetrahedron"};
  static const std::size_t sizes[] = {2, 3, 4, 4};
  Mesh &found = inside_->mesh(mesh);
  const auto which = std::size_t(kind);
  if (!(found.flags & provided)) inside_->refuse("mesh '" + mesh + "' is received, so its cells are not set here");
  inside_->refuse_after_start("the cells of mesh '" + mesh + "' can be set only before the start");
  for (std::size_t c = 0; c < count; ++c) {
    const int *cell = corners + c * sizes[which];
    for (std::size_t k = 0; k < sizes[which]; ++k)
      if (cell[k] < 0 || std::size_t(cell[k]) >= found.count())
        inside_->refuse(std::string("a ") + names[which] + " of mesh '" + mesh +
                        "' has a corner that is no point; points are numbered from 0 to " +
                        std::to_string(long(found.count()) - 1));
    if (std::set<int>(cell, cell + sizes[which]).size() < sizes[which])
      inside_->refuse(std::string("a ") + names[which] + " of mesh '" + mesh + "' has two equal corners");
    if (!(found.flags & cells_wanted)) continue;
    if (kind == Cell::quadrilateral)
      inside_->halve(found, cell);
    else
      found.cells[which].insert(found.cells[which].end(), cell, cell + sizes[which]);
  }
}

void Participant::set_region(const std::string &mesh, const double *box) {
  Mesh &found = inside_->mesh(mesh);
  if (!(found.flags & direct)) inside_->refuse("mesh '" + mesh + "' is not open to direct access");
  if (!found.region.empty()) inside_->refuse("the region of mesh '" + mesh + "' was set already; one box per mesh");
  inside_->refuse_after_start("the region of mesh '" + mesh + "' must be set before the start");
  for (int d = 0; d < found.dimensions; ++d)
    if (!(box[2 * d] <= box[2 * d + 1]))
      inside_->refuse("the region of mesh '" + mesh + "' is [min, max] for each axis, and its axis " +
                      std::to_string(d) + " has " + number(box[2 * d]) + " and " + number(box[2 * d + 1]));
  found.region.assign(box, box + 2 * found.dimensions);
}

bool Participant::needs_initial_data() const {
  bool found = false;
  inside_->for_written([&](Mesh &, Data &some) { found = found || (some.flags & initial); });
  return found;
}

bool Participant::needs_gradient(const std::string &mesh, const std::string &data) const {
  return inside_->data(inside_->mesh(mesh), data).flags & gradient;
}

void Participant::start() {
  if (inside_->started) inside_->refuse("was started already");
  Packer packer;
  for (const Mesh &one : inside_->meshes) {
    if (one.flags & provided) {
      packer.array(one.points);
      for (const auto &cells : one.cells) packer.numbers(cells);
    } else {
      packer.array(one.region);
    }
  }
  inside_->for_written([&](Mesh &one, Data &some) {
    if (one.flags & provided) Inside::content(packer, some);
  });
  Unpacker answer = inside_->ask(begin, packer.bytes, state);
  for (Mesh &one : inside_->meshes)
    if (!(one.flags & provided)) one.points = answer.array();
  inside_->started = true;
  inside_->for_written([](Mesh &one, Data &some) { Inside::clear(one, some); });
  inside_->arrive(answer);
}

std::size_t Participant::point_count(const std::string &mesh) const {
  Mesh &found = inside_->mesh(mesh);
  if (!(found.flags & provided) && !inside_->started)
    inside_->refuse("the points of the received mesh '" + mesh + "' arrive with the start");
  return found.count();
}

const double *Participant::points(const std::string &mesh) const {
  point_count(mesh);
  return inside_->mesh(mesh).points.data();
}

void Participant::write(const std::string &mesh, const std::string &data, std::size_t count, const int *points,
                        const double *values) {
  Mesh &found = inside_->mesh(mesh);
  Data &some = inside_->writable(found, data);
  inside_->put(found, some, some.buffer, std::size_t(some.components), count, points, values);
}

void Participant::write_gradient(const std::string &mesh, const std::string &data, std::size_t count,
                                 const int *points, const double *gradients) {
  Mesh &found = inside_->mesh(mesh);
  Data &some = inside_->writable(found, data);
  if (some.flags & gradient)
    inside_->put(found, some, some.gradient, std::size_t(some.components * found.dimensions), count, points, gradients);
}

void Participant::read(const std::string &mesh, const std::string &data, double after, std::size_t count,
                       const int *points, double *values) const {
  Mesh &found = inside_->mesh(mesh);
  Data &some = inside_->data(found, data);
  const Doubles all = inside_->sampled(found, some, after);
  if (!points && count != found.count())
    inside_->refuse("mesh '" + mesh + "' has " + std::to_string(found.count()) + " points, not " +
                    std::to_string(count));
  const auto width = std::size_t(some.components);
  for (std::size_t k = 0; k < count; ++k) {
    if (points) inside_->refuse_bad_number(found, points[k]);
    std::copy_n(all.data() + (points ? std::size_t(points[k]) : k) * width, width, values + k * width);
  }
}

void Participant::read_at(const std::string &mesh, const std::string &data, double after, std::size_t count,
                          const double *coordinates, double *values) const {
  Mesh &found = inside_->mesh(mesh);
  Data &some = inside_->data(found, data);
  const Doubles there =
      inside_->mapped_values(found, some, false, count, coordinates, inside_->sampled(found, some, after));
  if (there.size() != count * std::size_t(some.components)) inside_->refuse("the hub mapped to other points");
  std::copy(there.begin(), there.end(), values);
}

void Participant::write_at(const std::string &mesh, const std::string &data, std::size_t count,
                           const double *coordinates, const double *values) {
  Mesh &found = inside_->mesh(mesh);
  Data &some = inside_->writable(found, data);
  const std::size_t size = count * std::size_t(some.components);
  inside_->refuse_infinite(found, some, size, values);
  const Doubles there = inside_->mapped_values(found, some, true, count, coordinates, Doubles(values, values + size));
  if (there.size() != some.buffer.size()) inside_->refuse("the hub mapped to other points");
  for (std::size_t k = 0; k < there.size(); ++k) some.buffer[k] += there[k];
}

void Participant::advance(double step) {
  Inside &me = *inside_;
  if (!me.started) me.refuse("start it before it advances");
  if (!(me.flags & is_ongoing)) me.refuse("the coupling has ended; ask whether it is ongoing");
  if ((me.flags & must_save_now) && !me.saving_asked)
    me.refuse("its state must be saved here; ask must_save before it advances");
  if ((me.flags & must_restore_now) && !me.restoring_asked)
    me.refuse("its state must be restored; ask must_restore before it advances");
  const double room = me.room();
  if (!(step > 0.0 && step <= room * (1.0 + 1e-12) + 1e-14 && step < std::numeric_limits<double>::infinity()))
    me.refuse("a step of " + number(step) + " is not above 0 and at most " + number(room));
  const bool leading = me.flags & leads;
  const bool at_end = leading || me.progress + step >= me.remaining - nearly * me.window;
  me.progress = leading || !at_end ? me.progress + step : me.remaining;
  if (at_end || (me.rules & wants_substeps)) {
    me.samples.raw(&me.progress, 8);
    me.for_written([&](Mesh &, Data &some) { Inside::content(me.samples, some); });
    ++me.sample_count;
  }
  me.for_written([](Mesh &one, Data &some) { Inside::clear(one, some); });
  if (!at_end) {
    me.flags &= ~(complete | must_save_now | must_restore_now);
    return;
  }
  Packer packer;
  packer.whole(me.sample_count);
  packer.raw(me.samples.bytes.data(), me.samples.bytes.size());
  me.samples.bytes.clear();
  me.sample_count = 0;
  Unpacker answer = me.ask(step_done, packer.bytes, state);
  me.arrive(answer);
}

double Participant::time() const { return inside_->time + inside_->progress; }
double Participant::step_limit() const { return inside_->room(); }
bool Participant::in_touch() const { return inside_->line && inside_->line->open(); }
bool Participant::ongoing() const { return inside_->flags & is_ongoing; }
bool Participant::window_complete() const { return inside_->flags & complete; }
bool Participant::must_save() {
  inside_->saving_asked = true;
  return inside_->flags & must_save_now;
}
bool Participant::must_restore() {
  inside_->restoring_asked = true;
  return inside_->flags & must_restore_now;
}

void Participant::finish() {
  if (inside_->line && inside_->line->open()) {
    inside_->line->send(goodbye, {});
    inside_->line->close();
  }
}

}  // namespace cosolve
