#include "stagecraft/tools/train/verify/one_process.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/compiler/libtorch/half_type.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/tools/train/options/update_rule.h"
#include "stagecraft/tools/train/verify/named_state.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kNowhere = "no stage";

ReferenceOptions reference_options(const TrainJob& job, std::shared_ptr<const SumOrder> sums) {
  const OptimizerOptions& optimizer = job.options.optimizer;
  return {.learning_rate = make_learning_rate(optimizer, job.choice.steps),
          .groups = make_groups(optimizer),
          .decay_on = make_decay_on(optimizer),
          .clip = optimizer.clip,
          .clip_value = optimizer.clip_value,
          .average = optimizer.average,
          .master_weights = optimizer.master_weights,
          .loss_scaling = loss_scaling_of(job.options.pipeline.precision),
          .seed = job.start.seed,
          .threads = static_cast<int>(job.options.workers.threads),
          .sums = std::move(sums)};
}

bool has_divided_experts(const TrainJob& job) {
  return divides_weights(job.execution.plan->tables);
}

bool has_half_weights(const CompiledProgram& program) {
  return std::ranges::any_of(program.graph.parameters, [](const NamedTensor& parameter) {
    return is_half_type(parameter.tensor.scalar_type());
  });
}

double bound_of(const TrainJob& job) {
  const bool computes_in_half =
      has_divided_experts(job) && job.options.pipeline.precision != Precision::Float32;
  return computes_in_half || has_half_weights(job.execution.program.compiled()) ? kHalfTypeBound
                                                                                : kReorderedBound;
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
/// kWeight, kAverage or kBuffer. A tensor of several stages comes from the first, as in a trainer.
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

OneProcess::Side::Side(const TrainJob& job,
                       std::shared_ptr<const SumOrder> sums,
                       const std::optional<std::string>& reordered)
    : reference(resize(job.execution.program, job.choice.schedule.stage_graph().microbatch_sizes()),
                make_optimizer(job.options.optimizer),
                reference_options(job, std::move(sums))),
      verifier(reordered, bound_of(job)) {}

OneProcess::OneProcess(const TrainJob& job)
    : OneProcess(job, verify_order(job.execution, job.choice)) {}

OneProcess::OneProcess(const TrainJob& job, const VerifyOrder& order)
    : job_(job), plain_(job, nullptr, order.reordered) {
  if (order.as_ranks) {
    as_ranks_.emplace(job, order.as_ranks, std::nullopt);
  }
}

template <class Use>
void OneProcess::for_each_side(Use&& use) {
  use(plain_);
  if (as_ranks_) {
    use(*as_ranks_);
  }
}

void OneProcess::load(const Checkpoint& checkpoint) {
  std::map<std::string, at::Tensor> saved;
  for (const StateTensor& state : checkpoint.tensors) {
    saved.emplace(state.name, state.tensor);
  }
  const at::NoGradGuard no_grad;
  for_each_side([&](Side& side) {
    for (const StateTensor& state : side.reference.state()) {
      state.tensor.copy_(saved.at(state.name));
    }
    side.reference.set_steps(checkpoint.step, checkpoint.loss_scale, checkpoint.frozen);
  });
}

void OneProcess::scale_learning_rate(double factor) {
  for_each_side([&](Side& side) { side.reference.scale_learning_rate(factor); });
}

void OneProcess::train(const WorkBatch& batch, bool updates) {
  for_each_side([&](Side& side) {
    side.last = updates ? side.reference.step(batch.inputs, batch.labels)
                        : side.reference.accumulate(batch.inputs, batch.labels);
  });
}

void OneProcess::compare(std::int64_t number, const StepResult& pipeline) {
  for_each_side([&](Side& side) {
    side.verifier.step(
        number, pipeline.losses, side.last.losses, pipeline.mean_loss, side.last.mean_loss);
  });
}

void OneProcess::compare_state(Side& side,
                               const ModuleState& state,
                               const NamedTensors& averages) const {
  const auto stage = [&](const std::string& name) {
    return stage_of(job_.execution.program.compiled(), name);
  };
  const NamedTensors buffers = state_of(side.reference, kBuffer);
  const std::vector<std::string>& reordered = job_.execution.reordered_buffers;
  NamedTensors parameters = first_names(job_.execution.program, state.parameters);
  // Parameters that no stage uses are not trained, and the single process does not hold them.
  std::erase_if(parameters, [&](const auto& named) { return stage(named.first) == kNowhere; });
  side.verifier.parameters(parameters, state_of(side.reference, kWeight), stage);
  const NamedTensors averaged = state_of(side.reference, kAverage);
  side.verifier.parameters(select(averages, averaged), averaged, stage);
  side.verifier.buffers(select(first_names(job_.execution.program, state.buffers), buffers),
                        buffers,
                        stage,
                        {reordered.begin(), reordered.end()});
}

VerifyLine OneProcess::compare_state(Trainer& trainer) {
  const ModuleState state = trainer.module_state();
  const NamedTensors averages =
      job_.options.optimizer.average ? trainer.averages() : NamedTensors();
  for_each_side([&](Side& side) { compare_state(side, state, averages); });
  VerifyLine line = plain_.verifier.result();
  if (as_ranks_) {
    const VerifyLine& as_ranks = as_ranks_->verifier.result();
    line.equal_as_ranks = as_ranks.bit_equal;
    if (!as_ranks.bit_equal) {
      line.good = false;
      line.first_difference = as_ranks.first_difference;
    }
  }
  return line;
}

}  // namespace stagecraft::tools
