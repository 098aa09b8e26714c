/// TrainerState is the state of a trainer, read from its ranks and written to them.
///
/// A Trainer owns it and uses it on its caller's thread, which has no gradients then
/// (callers_thread.h). Reading waits for the steps in progress. Tensors have their names in
/// checkpoints, so cut and schedule do not matter. A tensor that several ranks hold occurs once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/crew/known_programs.h"
#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/actors/trainer/state/state_contents.h"
#include "stagecraft/actors/trainer/state/unused_state.h"
#include "stagecraft/compiler/module/module_state.h"
#include "stagecraft/compiler/program/program.h"

namespace stagecraft {

/// Bytes that are read from the ranks at once, unless a single tensor has more.
inline constexpr std::uint64_t kReadBytes = std::uint64_t{64} << 20U;

/// StateSource returns the tensor of this name, or the share of it (share_name).
using StateSource = std::function<at::Tensor(const std::string&)>;

/// Returns the states that ranks with these listings take from `source`. Views both.
[[nodiscard]] StateOfRank states_from(const std::vector<StateListing>& listings,
                                      const StateSource& source);

class TrainerState {
 public:
  /// Views all arguments but the program. `facts`: returns those of the state after so many updates
  /// (StepLedger::facts).
  TrainerState(Program program,
               const TrainerOptions& options,
               Crew& crew,
               StepLedger& ledger,
               KnownPrograms& programs,
               UnusedState& unused,
               std::function<std::string(std::int64_t updates)> facts);

  /// Returns the updates made by steps that are over.
  [[nodiscard]] std::int64_t updates() const { return ledger_.committed(); }
  /// Returns the scale of the next update, or that of the run before if this one does not scale;
  /// nothing if none did.
  [[nodiscard]] std::optional<LossScale> loss_scale() const;

  /// Returns the groups that were frozen in updates so far.
  [[nodiscard]] FrozenUpdates frozen_updates() const { return ledger_.frozen_updates(); }

  /// Returns what a trainer that follows this one needs to know of the state after so many updates.
  [[nodiscard]] std::string facts(std::int64_t updates) const { return facts_(updates); }

  [[nodiscard]] const Graph& graph() const { return program_.compiled().graph; }

  /// Returns the list of each rank's state, by rank.
  [[nodiscard]] std::vector<StateListing> list() { return crew_.list_state(); }

  /// Returns the parameters and buffers that no stage has; the living tensors.
  [[nodiscard]] const std::vector<StateTensor>& unused() const { return unused_.tensors(); }

  // The functions that read throw WorkerLost if the weights are undefined.

  /// Returns what the state consists of: weights, optimizer state and buffers.
  [[nodiscard]] std::vector<StateEntry> contents();

  /// Calls `visit` with a copy of each of these tensors, as a whole and in this order. Holds one
  /// tensor at a time, or several small ones, so no process has the whole state.
  void read_each(const std::vector<StateEntry>& contents,
                 const std::function<void(StateTensor)>& visit);

  /// Returns copies of all of them.
  [[nodiscard]] std::vector<StateTensor> read();

  /// Returns copies of weights and buffers under the module's names. One tensor has all names of a
  /// tie.
  [[nodiscard]] ModuleState read_module();

  /// Returns the same with averages in place of the weights that have one: in float32 for those
  /// with masters.
  /// Errors: UsageArgument if the options have no averages.
  [[nodiscard]] ModuleState read_averages();

  /// Returns the gradients of the last update, by name in the model's order.
  /// Errors: UsageArgument if steps do not keep them, and if there was no step since the state was
  ///         made or replaced.
  [[nodiscard]] std::vector<NamedTensor> read_gradients();

  /// Replaces weights and buffers; masters and averages begin again, the rest stays. `from` names
  /// the source in messages.
  /// Errors: those of load_state, with nothing changed; those of a rank that cannot take its part.
  void replace_module(const std::string& from, const ModuleState& given);

  /// Replaces the state of every rank, and of the tensors that no stage has, by that after
  /// `updates` updates. `scale`: that of losses; none: the first. `frozen`: as for
  /// GroupUpdates::replace. Asks for the tensors of one rank at a time. Calls `forgotten` when no
  /// rank has the old state any more: a recovery can bring none but the new one from then on.
  /// Requires: `source` has all tensors of the listings, in the right shapes.
  /// Errors: those of `source`, and of a rank that cannot take its part, which leaves weights
  /// undefined.
  void replace(const std::vector<StateListing>& listings,
               const StateSource& source,
               std::int64_t updates,
               const std::optional<LossScale>& scale,
               const std::optional<FrozenUpdates>& frozen,
               const std::function<void()>& forgotten);

  /// Calls `write`, which replaces the state of every rank by that after `updates` updates of this
  /// run. `facts`: of that state, if another trainer has made it. If `write` throws, weights are
  /// undefined.
  void go_back(const std::function<void()>& write,
               std::int64_t updates,
               const std::optional<CheckpointFacts>& facts = std::nullopt);

 private:
  void write_ranks(const std::function<void()>& write);
  void require_weights();
  [[nodiscard]] std::map<std::string, at::Tensor> read_by_name(
      const std::vector<StateEntry>& contents);
  [[nodiscard]] ModuleState named_by_module(const std::map<std::string, at::Tensor>& state) const;

  const Program program_;
  const TrainerOptions& options_;
  Crew& crew_;
  StepLedger& ledger_;
  KnownPrograms& programs_;
  UnusedState& unused_;
  const std::function<std::string(std::int64_t updates)> facts_;
  std::int64_t replaced_at_ = 0;  // updates when the state was last replaced
};

}  // namespace stagecraft
