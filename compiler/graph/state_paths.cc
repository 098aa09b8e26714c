#include "stagecraft/compiler/graph/state_paths.h"

#include <cstddef>

namespace stagecraft {

const std::string* name_of_state(const Graph& graph, ValueId id) {
  const Value& value = graph.at(id);
  const auto position = static_cast<std::size_t>(value.position);
  switch (value.kind) {
    case ValueKind::Parameter:
      return &graph.parameters[position].name;
    case ValueKind::Buffer:
      return &graph.buffers[position].name;
    default:
      return nullptr;
  }
}

bool is_below(std::string_view name, std::string_view path) {
  return name == path || (name.starts_with(path) && name.substr(path.size()).starts_with('.'));
}

std::vector<std::string> paths_above(std::string_view name) {
  std::vector<std::string> paths;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    paths.emplace_back(name.substr(0, dot));
  }
  return paths;
}

}  // namespace stagecraft
