#include "stagecraft/tools/train/verify/one_process.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/scheduler/notes/accumulation.h"
#include "stagecraft/tools/train/options/update_rule.h"
#include "stagecraft/tools/train/verify/named_state.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kNowhere = "no stage";

ReferenceOptions reference_options(const TrainJob& job) {
  const OptimizerOptions& optimizer = job.options.optimizer;
  return {.learning_rate = make_learning_rate(optimizer, job.choice.steps),
          .groups = make_groups(optimizer),
          .decay_on = make_decay_on(optimizer),
          .clip = optimizer.clip,
          .seed = job.start.seed,
          .threads = static_cast<int>(job.options.workers.threads)};
}

std::string stage_of(const CompiledProgram& program, const std::string& name) {
  const auto has = [&](const auto& all) {
    return std::ranges::any_of(all, [&](const auto& one) { return one.name == name; });
  };
  for (const StageProgram& stage : program.partition.stages) {
    if (has(stage.parameters) || has(stage.buffers)) {
      return fmt::format("stage {}", stage.id.value);
    }
  }
  return kNowhere;
}

/// Returns a part of the reference's state under the module's names, which lack its kinds. `kind`:
/// kWeight or kBuffer. A tensor of several stages comes from the first, as in a trainer.
NamedTensors state_of(const Reference& reference, std::string_view kind) {
  NamedTensors all;
  for (const StateTensor& state : reference.state()) {
    const std::string name = state.name.starts_with(kind) ? state.name.substr(kind.size()) : "";
    const auto same_name = [&](const auto& named) { return named.first == name; };
    if (!name.empty() && std::ranges::none_of(all, same_name)) {
      all.emplace_back(name, state.tensor);
    }
  }
  return all;
}

/// Returns the entries of `all` that `wanted` also has, in its order.
NamedTensors select(const NamedTensors& all, const NamedTensors& wanted) {
  const std::map<std::string, at::Tensor> by_name(all.begin(), all.end());
  NamedTensors found;
  for (const auto& [name, tensor] : wanted) {
    if (const auto at = by_name.find(name); at != by_name.end()) {
      found.emplace_back(*at);
    }
  }
  return found;
}

}  // namespace

OneProcess::OneProcess(const TrainJob& job)
    : job_(job),
      reference_(
          resize(job.execution.program, job.choice.schedule.stage_graph().microbatch_sizes()),
          make_optimizer(job.options.optimizer),
          reference_options(job)),
      verifier_(reordered_accumulation(
          job.choice.schedule, job.choice.layout.expand(job.execution.program.stage_graph()))) {}

void OneProcess::load(const Checkpoint& checkpoint) {
  std::map<std::string, at::Tensor> saved;
  for (const StateTensor& state : checkpoint.tensors) {
    saved.emplace(state.name, state.tensor);
  }
  const at::NoGradGuard no_grad;
  for (const StateTensor& state : reference_.state()) {
    state.tensor.copy_(saved.at(state.name));
  }
  reference_.set_steps(checkpoint.step);
}

void OneProcess::train(const WorkBatch& batch, bool updates) {
  last_ = updates ? reference_.step(batch.inputs, batch.labels)
                  : reference_.accumulate(batch.inputs, batch.labels);
}

void OneProcess::compare(std::int64_t number, const StepResult& pipeline) {
  verifier_.step(number, pipeline.losses, last_.losses, pipeline.mean_loss, last_.mean_loss);
}

VerifyLine OneProcess::compare_state(Trainer& trainer) {
  const auto stage = [&](const std::string& name) {
    return stage_of(job_.execution.program.compiled(), name);
  };
  const NamedTensors buffers = state_of(reference_, kBuffer);
  const std::vector<std::string>& reordered = job_.execution.reordered_buffers;
  const ModuleState state = trainer.module_state();
  NamedTensors parameters = first_names(job_.execution.program, state.parameters);
  // Parameters that no stage uses are not trained, and the single process does not hold them.
  std::erase_if(parameters, [&](const auto& named) { return stage(named.first) == kNowhere; });
  verifier_.parameters(parameters, state_of(reference_, kWeight), stage);
  verifier_.buffers(select(first_names(job_.execution.program, state.buffers), buffers),
                    buffers,
                    stage,
                    {reordered.begin(), reordered.end()});
  return verifier_.result();
}

}  // namespace stagecraft::tools
