// Every kind of argument that programs give to the interface; compiled only.
#include <array>
#include <precice/precice.hpp>
#include <string>
#include <string_view>
#include <vector>

void all_kinds(char **argv) {
  const char *pointer = argv[1];
  const char array[] = "Mesh";
  const auto text = std::string("Mesh");
  const std::string_view view = "Mesh";
  precice::Participant literals("A", "config.xml", 0, 1), pointers(pointer, argv[2], 0, 1);
  precice::Participant strings(text, std::string("config.xml"), 0, 1), views(view, "config.xml", 0, 1);
  std::vector<double> numbers(2);
  std::vector<precice::VertexID> ids(1);
  std::array<double, 2> two{};
  double plain[2] = {0, 0};
  const std::vector<double> constant{0, 1};
  literals.setMeshVertices("Mesh", numbers, ids);
  literals.setMeshVertices(array, two, ids);
  literals.setMeshVertices(text, plain, ids);
  literals.setMeshVertices(view, constant, ids);
  literals.setMeshVertices(argv[1], {numbers.data(), numbers.size()}, {ids.data(), ids.size()});
  literals.writeData("Mesh", "Data", ids, numbers);
  literals.writeData(text, "Data", ids, two);
  literals.readData("Mesh", pointer, ids, 0.5, plain);
}
