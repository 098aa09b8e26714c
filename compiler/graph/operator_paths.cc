#include "stagecraft/compiler/graph/operator_paths.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/split.h"
#include "stagecraft/compiler/graph/state_paths.h"

namespace stagecraft {
namespace {

std::vector<std::string_view> parts_of(std::string_view path) {
  return path.empty() ? std::vector<std::string_view>() : split(path, '.');
}

std::string joined(const std::vector<std::string_view>& parts, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < std::min(count, parts.size()); ++i) {
    path += i == 0 ? "" : ".";
    path += parts[i];
  }
  return path;
}

std::size_t common_parts(const std::vector<std::string_view>& a,
                         const std::vector<std::string_view>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Returns the module that has the tensor; for a tensor of the root module, the tensor itself.
std::string module_of(const std::string& tensor) {
  const std::size_t dot = tensor.rfind('.');
  return dot == std::string::npos ? tensor : tensor.substr(0, dot);
}

std::string own_path(const Graph& graph, const Node& node) {
  std::optional<std::string> path;
  for (const ValueId read : reads_of(node)) {
    if (const std::string* name = name_of_state(graph, read)) {
      const std::string module = module_of(*name);
      const auto parts = parts_of(module);
      path = path ? joined(parts, common_parts(parts, parts_of(*path))) : module;
    }
  }
  return path.value_or("");
}

}  // namespace

std::vector<std::string> own_paths(const Graph& graph) {
  std::vector<std::string> paths;
  for (const Node& node : graph.nodes) {
    paths.push_back(own_path(graph, node));
  }
  return paths;
}

std::string last_path(const Graph& graph) {
  std::string path;
  for (std::size_t n = graph.nodes.size(); path.empty() && n-- > 0;) {
    path = own_path(graph, graph.nodes[n]);
  }
  return path;
}

std::string described_operator(const Graph& graph, std::size_t node) {
  // Walk backwards along the operands. Of several ways take the one to the operator that ran last.
  std::set<std::size_t> ahead{node};
  std::string path;
  while (!ahead.empty() && path.empty()) {
    const std::size_t n = *ahead.rbegin();
    ahead.erase(n);
    path = own_path(graph, graph.nodes[n]);
    for (const ValueId read : reads_of(graph.nodes[n])) {
      if (graph.at(read).kind == ValueKind::Computed) {
        ahead.insert(static_cast<std::size_t>(graph.at(read).position));
      }
    }
  }
  return fmt::format(
      "{} (op:{}{})", operator_name(graph.nodes[node]), node, path.empty() ? "" : ", near " + path);
}

std::string place_before(const Graph& graph,
                         const std::vector<std::string>& own,
                         std::size_t node) {
  const auto middle = own.begin() + static_cast<std::ptrdiff_t>(node);
  const auto named = [](const std::string& path) { return !path.empty(); };
  const auto before = std::find_if(std::make_reverse_iterator(middle), own.rend(), named);
  const auto after = std::find_if(middle, own.end(), named);
  if (before == own.rend()) {
    return "before " + described_operator(graph, node);
  }
  if (after == own.end()) {
    return fmt::format("behind {}, before {}", *before, described_operator(graph, node));
  }
  const auto last = parts_of(*before);
  const auto first = parts_of(*after);
  const std::size_t common = common_parts(last, first);
  if (common == last.size() || common == first.size()) {
    return fmt::format(
        "inside {}, before {}", joined(last, common), described_operator(graph, node));
  }
  return fmt::format("between {} and {}", joined(last, common + 1), joined(first, common + 1));
}

}  // namespace stagecraft
