#include "stagecraft/scheduler/render/dag/dag_words.h"

#include <fmt/format.h>

namespace stagecraft::drawing {
namespace {

constexpr const char* kRightArrow = "\xE2\x86\x92";
constexpr const char* kLeftArrow = "\xE2\x86\x90";

}  // namespace

NodeLabel node_label(const TrainingDag& dag, int number) {
  const DagNode& node = dag.node(number);
  if (computes(node.kind)) {
    return {to_string(dag, number), ""};
  }
  std::string kind(to_string(node.kind));
  if (is_transfer(node.kind)) {
    return {kind,
            fmt::format("{}{}{} {} {}",
                        node.stage.value,
                        node.gradient ? "B" : "F",
                        dag.microbatch_in_schedule(node),
                        node.kind == DagKind::Send ? kRightArrow : kLeftArrow,
                        dag.node(node.peer).stage.value)};
  }
  if (node.tie != kNone) {
    return {kind, dag.source.ties[static_cast<std::size_t>(node.tie)].name};
  }
  if (node.stage.value == kNone) {
    return {kind, ""};
  }
  const bool whole = node.chunk == kNone || dag.source.chunks[node.stage.index()].size() == 1;
  return {node.kind == DagKind::ReduceScatter ? "scatter" : kind,  // too long for a node
          fmt::format("stage {}{}", node.stage.value, whole ? "" : fmt::format(".{}", node.chunk))};
}

}  // namespace stagecraft::drawing
