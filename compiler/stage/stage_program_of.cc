#include "stagecraft/compiler/stage/stage_program_of.h"

#include <set>
#include <utility>

#include <c10/util/strides.h>

namespace stagecraft {
namespace {

/// Returns the strides that a copy has: the tensor's own if it is dense.
std::vector<std::int64_t> strides_of(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) {
    return tensor.strides().vec();
  }
  const auto strides = c10::contiguous_strides(tensor.sizes());
  return {strides.begin(), strides.end()};
}

class Completion {
 public:
  Completion(const Graph& graph, std::vector<Node> nodes, StageProgram& stage)
      : graph_(graph), stage_(stage), chunk_{.nodes = std::move(nodes)} {}

  void run() {
    for (const StageInput& input : stage_.inputs) {
      chunk_.inputs.push_back(input.value);
      take(input.value);
    }
    for (const StageOutput& output : stage_.outputs) {
      chunk_.outputs.push_back(output.value);
      take(output.value);
    }
    for (Node& node : chunk_.nodes) {
      take_node(node);
    }
    take_state();
    stage_.chunks.push_back(std::move(chunk_));
  }

 private:
  void take_node(Node& node) {
    for (const ValueId read : reads_of(node)) {
      take(read);
    }
    for (const ValueId result : node.results) {
      take(result);
      if (result != kNoValue && result == graph_.loss) {
        stage_.loss = result;
      }
    }
    for (const ValueId written : node.writes) {
      take(written);
      written_.insert(graph_.at(written).alias_set);
    }
    if (node.function != kNoAttachment) {
      node.function = attachment(node.function);
    }
  }

  void take(ValueId id) {
    if (id == kNoValue || stage_.values.contains(id)) {
      return;
    }
    Value value = graph_.at(id);
    if (value.hooks != kNoAttachment) {
      value.hooks = attachment(value.hooks);
    }
    stage_.values.emplace(id, std::move(value));
  }

  /// Returns the stage's number for one of the graph's attachments.
  int attachment(int of_graph) {
    const auto [entry, added] =
        attachments_.try_emplace(of_graph, static_cast<int>(stage_.attachments.size()));
    if (added) {
      stage_.attachments.push_back(graph_.attachments[static_cast<std::size_t>(of_graph)]);
    }
    return entry->second;
  }

  /// Takes the state in the order of the values. That is the model's order, since parameters and
  /// buffers are made before all other values.
  void take_state() {
    for (const auto& [id, value] : stage_.values) {
      const auto position = static_cast<std::size_t>(value.position);
      switch (value.kind) {
        case ValueKind::Parameter:
          stage_.parameters.push_back({graph_.parameters[position].name, id, value.position});
          break;
        case ValueKind::Buffer:
          stage_.buffers.push_back({graph_.buffers[position].name,
                                    id,
                                    value.position,
                                    written_.contains(value.alias_set),
                                    strides_of(graph_.buffers[position].tensor)});
          break;
        case ValueKind::Constant:
          stage_.constants.push_back({id, graph_.constants[position]});
          break;
        case ValueKind::Input:
        case ValueKind::Label:
        case ValueKind::Computed:
          break;
      }
    }
  }

  const Graph& graph_;
  StageProgram& stage_;
  Chunk chunk_;
  std::map<int, int> attachments_;
  std::set<int> written_;  // alias sets
};

}  // namespace

void complete_from(const Graph& graph, std::vector<Node> nodes, StageProgram& stage) {
  Completion(graph, std::move(nodes), stage).run();
}

}  // namespace stagecraft
