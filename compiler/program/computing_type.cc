#include "stagecraft/compiler/program/computing_type.h"

#include <set>

#include <c10/core/ScalarType.h>

namespace stagecraft {

std::string_view computing_type(const Graph& graph) {
  std::set<at::ScalarType> types;
  for (const Node& node : graph.nodes) {
    if (node.autocast.enabled) {
      types.insert(node.autocast.dtype);
    }
  }
  if (types.empty()) {
    for (const NamedTensor& parameter : graph.parameters) {
      types.insert(parameter.tensor.scalar_type());
    }
  }
  if (types.size() != 1) {
    return "";
  }
  switch (*types.begin()) {
    case at::kFloat:
      return "fp32";
    case at::kBFloat16:
      return "bf16";
    case at::kHalf:
      return "fp16";
    default:
      return "";
  }
}

}  // namespace stagecraft
