#include "stagecraft/actors/trainer/checked_options.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/master_weights.h"
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/executor/optimizer/parameter_groups.h"
#include "stagecraft/actors/executor/step/loss_weight.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

void check_ranks(const Execution& execution, int available) {
  const int ranks = execution.layout.ranks() - (execution.has_driver_row ? 1 : 0);
  if (ranks > available) {
    throw Error(Errc::ClusterMember,
                fmt::format("the schedule runs on {} and the cluster has {}: make a cluster "
                            "of {}, or a schedule of fewer rows",
                            count_text(ranks, "rank"),
                            available,
                            ranks));
  }
}

void check_device(const TrainerOptions& options, const Execution& execution) {
  if (execution.has_driver_row && options.device != "cpu") {
    throw Error(Errc::UsageArgument,
                "code of the driver (sc::on_driver) runs beside ranks on the CPU only yet: leave "
                "the device out");
  }
  if (execution.has_driver_row && options.dispatch == Dispatch::Decided) {
    throw Error(Errc::UsageArgument,
                "the order of a program with code of the driver (sc::on_driver) cannot be decided "
                "while it runs yet, because its stages run in parts: use Dispatch::PerTask");
  }
  if (options.dispatch != Dispatch::Plan && options.device != "cpu") {
    throw Error(Errc::UsageArgument,
                "the driver dispatches by task on the CPU only yet: leave the device out, or run "
                "by plan");
  }
}

void check_dispatch(const TrainerOptions& options) {
  if (options.on_column && options.dispatch == Dispatch::Plan) {
    throw Error(Errc::UsageArgument,
                "on_column looks at the columns that the driver dispatches: set dispatch to "
                "Dispatch::PerTask or Dispatch::Decided, or leave on_column out");
  }
  if (options.column_tensors && !options.on_column && !options.decide) {
    throw Error(Errc::UsageArgument,
                "column_tensors is for those who look at columns: set on_column, or leave it out");
  }
  if ((options.dispatch == Dispatch::Decided) != (options.decide != nullptr)) {
    throw Error(Errc::UsageArgument,
                "Dispatch::Decided needs a function that names the tasks, and nothing else uses "
                "one: set both dispatch and decide, or neither");
  }
}

void check_mirror(const TrainerOptions& options, const Layout& layout) {
  if (options.mirror && layout.ranks() < 2) {
    throw Error(Errc::UsageArgument,
                "mirror needs a neighbor to keep the copies, and this schedule runs on one rank: "
                "leave it out, or use a schedule of more rows");
  }
  if (!options.run.empty() && !options.mirror) {
    throw Error(Errc::UsageArgument,
                "run names a run whose workers outlive their driver with copies of its states, and "
                "mirror makes these: set it too, or leave run out");
  }
}

void check_shards(const TrainerOptions& options, const Optimizer& optimizer, const Plan& plan) {
  if (!copies_differ(plan)) {
    return;
  }
  if (std::holds_alternative<CustomOptimizer>(optimizer)) {
    throw Error(
        Errc::UsageArgument,
        "an optimizer of your own updates whole parameters, and copies that share what they hold "
        "have parts of them: leave shard_optimizer (shard_grads, shard_params) and shard out, or "
        "use an optimizer of the library");
  }
  if (options.dispatch == Dispatch::Decided &&
      std::ranges::any_of(plan.tables.groups, &PlanGroup::has_rounds)) {
    throw Error(Errc::UsageArgument,
                "the rounds in which copies sum gradients (shard_grads) follow the order of tasks, "
                "and this order is decided while it runs: use Dispatch::PerTask, or "
                "shard_optimizer");
  }
  if (options.dispatch == Dispatch::Decided && divides_weights(plan.tables)) {
    throw Error(Errc::UsageArgument,
                "ranks that divide weights (shard) exchange samples in the order of their tasks, "
                "and this order is decided while it runs: use Dispatch::PerTask");
  }
  if (options.device != "cpu") {
    throw Error(Errc::UsageArgument,
                "copies share what they hold (shard_optimizer, shard_grads, shard_params), and "
                "divide weights (shard), on the CPU only yet: leave the device or the option out");
  }
}

}  // namespace

TrainerOptions checked_options(TrainerOptions options,
                               const Optimizer& optimizer,
                               const Execution& execution,
                               int available) {
  check_options(options);
  check_dispatch(options);
  check_optimizer(optimizer);
  check_groups(options.groups, optimizer);
  check_groups_match(options.groups, execution.program.parameter_names());
  if (options.master_weights) {
    check_master_weights(execution.program.compiled().graph.parameters);
  }
  check_ranks(execution, available);
  check_device(options, execution);
  check_loss_weight(options.loss_weight, execution.sized.stage_graph());
  check_mirror(options, execution.layout);
  check_shards(options, optimizer, *execution.plan);
  return options;
}

}  // namespace stagecraft
