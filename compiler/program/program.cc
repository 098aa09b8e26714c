#include "stagecraft/compiler/program/program.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

std::string recomputed(const StageProgram& stage) {
  const auto parts = std::ranges::count_if(stage.chunks, &Chunk::recompute);
  return parts == 0 ? std::string()
                    : fmt::format(", recomputes {} in {}",
                                  bytes_text(static_cast<double>(stage.replayed_bytes())),
                                  count_text(parts, "part"));
}

std::string explain_stage(const CompiledProgram& program, const StageProgram& stage) {
  const Graph& graph = program.graph;
  const StageParts& parts = program.assignment.parts;
  const bool on_driver = !parts.empty() && parts[stage.id.index()].on_driver;
  std::string text =
      fmt::format("stage {} \"{}\": {}, {} ({}), keeps {} per microbatch{}{}{}\n",
                  stage.id.value,
                  stage.name,
                  count_text(stage.operator_count(), "operator"),
                  count_text(stage.parameters.size(), "parameter"),
                  bytes_text(static_cast<double>(weight_bytes(stage))),
                  bytes_text(static_cast<double>(stage.saved_bytes)),
                  recomputed(stage),
                  on_driver                                    ? ", on the driver"
                  : program.stage_graph.has_backward(stage.id) ? ""
                                                               : ", frozen: no backward",
                  stage.loss == kNoValue ? "" : ", computes the loss");
  std::vector<std::string> reads;
  for (const StageInput& input : stage.inputs) {
    if (input.source != StageInput::Source::Stage) {
      reads.push_back(value_name(graph, input.value));
    }
  }
  if (!reads.empty()) {
    text += fmt::format("  reads {}\n", fmt::join(reads, ", "));
  }
  for (const StageOutput& output : stage.outputs) {
    for (std::size_t c = 0; c < output.consumers.size(); ++c) {
      text += fmt::format("  {} -> stage {} \"{}\": {}[{}], {}{}\n",
                          value_name(graph, output.value),
                          output.consumers[c].value,
                          program.partition.stages[output.consumers[c].index()].name,
                          at::toString(graph.at(output.value).dtype),
                          fmt::join(graph.at(output.value).sizes, ", "),
                          bytes_text(static_cast<double>(bytes_of(graph.at(output.value)))),
                          output.gradient_from[c] ? ", gradient back" : "");
    }
  }
  return text;
}

std::string explain_tie(const Partition& partition, const TiedParameter& tied) {
  std::vector<std::string> stages;
  for (const StageId stage : tied.stages) {
    stages.push_back(fmt::format("{} \"{}\"", stage.value, partition.stages[stage.index()].name));
  }
  const StageProgram& first = partition.stages[tied.stages.front().index()];
  const auto parameter = std::ranges::find(first.parameters, tied.name, &StageParameter::name);
  return fmt::format("{}: one parameter of the stages {}, a copy in each{}\n",
                     tied.name,
                     fmt::join(stages, ", "),
                     parameter != first.parameters.end() && parameter->trained
                         ? "; gradients are added once a step"
                         : "");
}

}  // namespace

Program::Program(std::shared_ptr<const CompiledProgram> compiled,
                 std::shared_ptr<ShapeCaptures> shape_captures,
                 std::shared_ptr<Evaluations> evaluations)
    : compiled_(std::move(compiled)),
      shape_captures_(std::move(shape_captures)),
      evaluations_(std::move(evaluations)) {
  if (compiled_ == nullptr) {
    throw Error(Errc::UsageArgument,
                "expected a compiled program, found a null pointer; get one from sc::compile");
  }
}

const StageGraph& Program::stage_graph() const {
  return compiled_->whole_stages ? *compiled_->whole_stages : compiled_->stage_graph;
}

int Program::microbatches() const {
  return compiled_->microbatches;
}

std::vector<std::string> Program::parameter_names() const {
  std::vector<std::string> names;
  for (const NamedTensor& p : compiled_->graph.parameters) {
    names.push_back(p.name);
  }
  return names;
}

const CutReport& Program::cut() const {
  return compiled_->cut;
}

std::string Program::explain() const {
  std::string text;
  for (const StageProgram& stage : compiled_->partition.stages) {
    text += explain_stage(*compiled_, stage);
  }
  for (const TiedParameter& tied : compiled_->stage_graph.tied()) {
    text += explain_tie(compiled_->partition, tied);
  }
  for (const Attachment& attachment : compiled_->graph.attachments) {
    text += fmt::format("in this process only: {}\n", name_of(attachment));
  }
  return text + to_string(compiled_->passes);
}

std::string Program::graph_text() const {
  return to_string(compiled_->graph);
}

}  // namespace stagecraft
