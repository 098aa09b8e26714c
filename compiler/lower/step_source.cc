#include "stagecraft/compiler/lower/step_source.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "stagecraft/compiler/program/ties.h"

namespace stagecraft {
namespace {

constexpr StageId kNoStage{-1};

/// Returns the regions that all operators of the chunk are in.
std::vector<RegionTag> regions_of(const Chunk& chunk) {
  std::vector<RegionTag> regions;
  if (chunk.nodes.empty()) {
    return regions;  // a stage of an evaluation may only pass values on
  }
  for (const Annotation& a : chunk.nodes.front().annotations) {
    const bool users = a.tag != kStageTag && a.tag != kLossTag && a.tag != kRecomputeTag;
    const bool everywhere = std::ranges::all_of(chunk.nodes, [&](const Node& node) {
      return std::ranges::find(node.annotations, a) != node.annotations.end();
    });
    if (users && everywhere) {
      regions.emplace_back(a.tag, a.index);
    }
  }
  return regions;
}

/// Returns the last chunk before `end` that passes the value on; -1 for an input of the stage.
int maker_before(const StageProgram& stage, ValueId value, std::size_t end) {
  for (std::size_t c = end; c-- > 0;) {
    if (std::ranges::find(stage.chunks[c].outputs, value) != stage.chunks[c].outputs.end()) {
      return static_cast<int>(c);
    }
  }
  return -1;
}

std::vector<DagChunk> chunks_of(const StageProgram& stage, bool has_copies) {
  std::vector<DagChunk> chunks;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    const Chunk& chunk = stage.chunks[c];
    std::set<int> makers;
    for (const ValueId input : chunk.inputs) {
      if (const int maker = maker_before(stage, input, c); maker >= 0) {
        makers.insert(maker);
      }
    }
    chunks.push_back({.regions = regions_of(chunk), .reads = {makers.begin(), makers.end()}});
  }
  const std::vector<int> completing = completing_chunks(stage);
  std::size_t trained = 0;
  for (const StageParameter& parameter : stage.parameters) {
    if (parameter.trained) {
      chunks[static_cast<std::size_t>(completing[trained++])].parameter_bytes +=
          bytes_of(stage.at(parameter.value));
    }
  }
  const bool changes = std::ranges::any_of(stage.buffers, &StageBuffer::written);
  if (trained == 0 && has_copies && changes) {
    chunks.front().parameter_bytes = 1;  // copies share their buffers
  }
  return chunks;
}

/// Makes the edges and tensors of all stages.
class Edges {
 public:
  Edges(const CompiledProgram& program, StepSource& source) : program_(program), source_(source) {}

  void add() {
    std::map<std::pair<StageId, ValueId>, EdgeId> activation;  // by reader
    for_each_input([&](StageId reader, const StageInput& input) {
      const bool crosses = input.source == StageInput::Source::Stage;
      activation[{reader, input.value}] =
          add(input.value, Role::Activation, crosses ? maker(reader, input) : kNoStage, reader);
    });
    for_each_input([&](StageId reader, const StageInput& input) {
      if (input.source != StageInput::Source::Stage) {
        return;
      }
      const StageProgram& from = program_.partition.stages[input.from.index()];
      const StageProgram& to = of(reader);
      DagTensor tensor{.from = maker(reader, input),
                       .from_chunk = maker_of(from, input.value),
                       .gradient_chunk = last_user(from, input.value),
                       .to = reader,
                       .to_chunk = first_reader(to, input.value),
                       .owes_gradient = input.owes_gradient,
                       .activation = activation.at({reader, input.value})};
      if (input.owes_gradient) {
        tensor.gradient = add(input.value, Role::Gradient, reader, tensor.from);
      }
      source_.dag.tensors.push_back(tensor);
    });
    if (program_.evaluates != nullptr) {
      add_results();
    }
  }

 private:
  [[nodiscard]] const StageProgram& of(StageId s) const {
    return program_.partition.stages[source_.stages[s.index()].program.index()];
  }

  template <class Use>
  void for_each_input(Use&& use) {
    for (std::size_t s = 0; s < source_.stages.size(); ++s) {
      for (const StageInput& input : of(StageId(s)).inputs) {
        use(StageId(s), input);
      }
    }
  }

  [[nodiscard]] StageId maker(StageId reader, const StageInput& input) {
    const int copy = source_.stages[reader.index()].copy;
    auto& numbers = numbers_[copy];
    if (numbers.empty()) {
      numbers = numbers_of_copy(source_.stages, copy);
    }
    return numbers[input.from.index()];
  }

  EdgeId add(ValueId value, Role role, StageId from, StageId to) {
    source_.edges.push_back({EdgeId(source_.edges.size()), value, role, from, to});
    return source_.edges.back().id;
  }

  void add_results() {
    const std::vector<ValueId>& results = results_of(program_.graph);
    for (std::size_t s = 0; s < source_.stages.size(); ++s) {
      for (const StageOutput& output : of(StageId(s)).outputs) {
        if (std::ranges::find(results, output.value) != results.end()) {
          add(output.value, Role::Activation, StageId(s), kNoStage);
        }
      }
    }
  }

  const CompiledProgram& program_;
  StepSource& source_;
  std::map<int, std::vector<StageId>> numbers_;  // by copy
};

}  // namespace

StepSource step_source(const CompiledProgram& program, const Layout& layout) {
  StepSource source{.dag = {.graph = layout.expand(program.stage_graph)}};
  const bool has_copies = layout.replicas() > 1 || !layout.is_single();
  for (int s = 0; s < source.dag.graph.size(); ++s) {
    const StageId stage(s);
    const bool copied = layout.replicas() > 1;
    source.stages.push_back({.program = copied ? layout.model_stage(stage) : stage,
                             .copy = copied ? layout.replica(stage) : 0,
                             .size = source.dag.graph.microbatch_size(stage)});
    source.dag.chunks.push_back(
        chunks_of(program.partition.stages[source.stages.back().program.index()], has_copies));
  }
  Edges(program, source).add();
  for (const Tie& tie : ties_of(program)) {
    for (int copy = 0; copy < layout.replicas(); ++copy) {
      DagTie& of_copy = source.dag.ties.emplace_back(DagTie{.name = tie.parameters.front()});
      for (const StageId stage : tie.stages) {
        of_copy.stages.push_back(numbers_of_copy(source.stages, copy)[stage.index()]);
      }
      source.tied.push_back(tie.parameters);
    }
  }
  return source;
}

}  // namespace stagecraft
