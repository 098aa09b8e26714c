#include "stagecraft/actors/trainer/steps/kept_futures.h"

#include <algorithm>
#include <set>
#include <utility>

#include "stagecraft/actors/remote/remote_actor.h"

namespace stagecraft {
namespace {

/// Returns the numbers of the stage's values that stay on its rank.
std::set<std::int32_t> kept_of(const StageProgram& stage) {
  std::set<std::int32_t> numbers;
  if (stage.keeps_loss) {
    numbers.insert(kLossValue);
  }
  for (const StageOutput& output : stage.outputs) {
    numbers.insert(output.kept.begin(), output.kept.end());
  }
  return numbers;
}

/// Returns the names of the values that the rank makes.
std::set<StepValueName> names_of(const CompiledProgram& program,
                                 const Plan& plan,
                                 const RankPlan& rank) {
  std::set<StepValueName> names;
  for (const Instruction& i : plan.list_of(rank.rank).instructions) {
    if (i.op != Op::Run || i.task.kind != CellKind::Forward) {
      continue;
    }
    const PlanStage& stage = plan.tables.stages[i.task.stage.index()];
    for (const std::int32_t number : kept_of(program.partition.stages[stage.program.index()])) {
      names.insert({number, in_step_of(rank, i.task.microbatch, stage.size)});
    }
  }
  return names;
}

}  // namespace

std::vector<Future<at::Tensor>> expected_values(RemoteActors& actors,
                                                const StepValues::Place& made,
                                                const std::vector<StepValueName>& names,
                                                std::chrono::milliseconds limit) {
  std::vector<std::shared_ptr<Promise<at::Tensor>>> promises;
  std::vector<std::unique_ptr<Completion>> completions;
  for (std::size_t i = 0; i < names.size(); ++i) {
    promises.push_back(std::make_shared<Promise<at::Tensor>>());
    completions.push_back(std::make_unique<detail::TypedCompletion<at::Tensor>>(promises.back()));
  }
  const auto origins = actors.expect(made, names, std::move(completions), limit);
  std::vector<Future<at::Tensor>> futures;
  for (std::size_t i = 0; i < names.size(); ++i) {
    futures.push_back(promises[i]->future(origins[i]));
  }
  return futures;
}

std::vector<Future<at::Tensor>> task_values(RemoteActors& actors,
                                            const StepValues::Place& made,
                                            std::size_t count,
                                            std::chrono::milliseconds limit) {
  std::vector<StepValueName> names(count);
  for (std::size_t i = 0; i < count; ++i) {
    names[i].output = static_cast<std::int32_t>(i);
  }
  return expected_values(actors, made, names, limit);
}

std::vector<Future<at::Tensor>> values_on_driver(std::size_t count) {
  Promise<at::Tensor> none;
  none.set_error(Error(Errc::UsageArgument,
                       "this value belongs to code of the driver (sc::on_driver): take it there"));
  return std::vector<Future<at::Tensor>>(count, none.future());
}

StepKeeper::StepKeeper(std::shared_ptr<RemoteActors> actors,
                       PlanId plan_id,
                       const CompiledProgram& program,
                       const Plan& plan,
                       std::chrono::milliseconds limit)
    : actors_(std::move(actors)), plan_id_(plan_id), limit_(limit) {
  for (const RankPlan& rank : plan.ranks) {
    const std::set<StepValueName> names = names_of(program, plan, rank);
    if (!names.empty()) {
      actors_->begin(rank.rank);
      names_[rank.rank] = {names.begin(), names.end()};
    }
  }
}

std::shared_ptr<const KeptFutures> StepKeeper::expect(const EnteredStep& step) const {
  if (names_.empty()) {
    return nullptr;
  }
  auto kept = std::make_shared<KeptFutures>();
  std::vector<std::shared_ptr<FutureOrigin>> all;
  for (const auto& [rank, names] : names_) {
    const std::vector<Future<at::Tensor>> expected =
        expected_values(*actors_, {plan_id_, rank, step.submission}, names, limit_);
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::vector<Future<at::Tensor>>& futures = kept->values[names[i].output];
      futures.resize(std::max(futures.size(), names[i].microbatch.index() + 1));
      futures[names[i].microbatch.index()] = expected[i];
      all.push_back(expected[i].origin());
    }
  }
  // Keeps KF-2. Until the step is over it also holds the values of which nobody has a future.
  (void)step.result.on_ready([actors = actors_, all, result = step.result] {
    try {
      (void)result.get();
    } catch (const Error& why) {
      actors->fail_expected(all, why);
    }
  });
  return kept;
}

}  // namespace stagecraft
