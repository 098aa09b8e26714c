#include "stagecraft/actors/trainer/state/trainer_state.h"

#include <set>
#include <utility>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/trainer/state/state_shares.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft {

TrainerState::TrainerState(Program program,
                           const TrainerOptions& options,
                           Crew& crew,
                           StepLedger& ledger,
                           KnownPrograms& programs,
                           UnusedState& unused)
    : program_(std::move(program)),
      options_(options),
      crew_(crew),
      ledger_(ledger),
      programs_(programs),
      unused_(unused) {}

/// Errors: WorkerLost if the state of the weights is unknown.
void TrainerState::require_weights() {
  ledger_.drain();
  if (const auto lost = ledger_.lost()) {
    throw Error(Errc::WorkerLost, "the weights are undefined")
        .advise(std::string(crew_.advice()))
        .with({.rank = lost->context().rank})
        .because(*lost);
  }
}

std::vector<StateTensor> TrainerState::read() {
  require_weights();
  std::vector<StateTensor> all;
  for (const StateTensor& kept : unused_.tensors()) {
    all.push_back({kept.name, kept.tensor.clone()});
  }
  std::set<std::string> names;
  for (std::vector<StateTensor>& of_rank : crew_.read_state()) {
    for (StateTensor& state : of_rank) {
      if (names.insert(state.name).second) {  // a buffer of two stages comes from the first one
        all.push_back(std::move(state));
      }
    }
  }
  return join_shares(program_.compiled().graph, all);
}

std::map<std::string, at::Tensor> TrainerState::read_by_name() {
  std::map<std::string, at::Tensor> by_name;
  for (auto& [name, tensor] : read()) {
    by_name[name] = tensor;
  }
  return by_name;
}

ModuleState TrainerState::named_by_module(const std::map<std::string, at::Tensor>& by_name) const {
  ModuleState state;
  for (const StateName& entry : program_.compiled().state_names) {
    const at::Tensor& tensor =
        by_name.at(state_name(entry.buffer ? kBuffer : kWeight, entry.first));
    (entry.buffer ? state.buffers : state.parameters).push_back({entry.name, tensor});
  }
  return state;
}

std::optional<LossScale> TrainerState::loss_scale() const {
  const LossScale scale = ledger_.loss_scale();
  return options_.loss_scaling || scale != LossScale() ? std::optional(scale) : std::nullopt;
}

ModuleState TrainerState::read_module() {
  return named_by_module(read_by_name());
}

std::vector<NamedTensor> TrainerState::read_gradients() {
  if (!options_.keep_gradients) {
    throw Error(
        Errc::UsageArgument,
        "gradients() needs steps that keep their gradients: set TrainerOptions::keep_gradients");
  }
  require_weights();
  if (ledger_.committed() == replaced_at_) {
    throw Error(Errc::UsageArgument,
                "there are no gradients before a step is made: make one first");
  }
  std::set<std::string> names;
  std::vector<NamedTensor> all;
  for (std::vector<StateTensor>& of_rank : crew_.read_gradients()) {
    for (StateTensor& gradient : of_rank) {
      if (names.insert(gradient.name).second) {  // copies have the same ones
        all.push_back(std::move(gradient));
      }
    }
  }
  std::map<std::string, at::Tensor> by_name;
  for (NamedTensor& gradient : join_shares(program_.compiled().graph, all)) {
    by_name.emplace(std::move(gradient.name), std::move(gradient.tensor));
  }
  std::vector<NamedTensor> result;
  for (const std::string& name : program_.parameter_names()) {
    if (const auto found = by_name.find(name); found != by_name.end()) {
      result.push_back({name, found->second});
    }
  }
  return result;
}

void TrainerState::replace_module(const std::string& from, const ModuleState& given) {
  const std::map<std::string, at::Tensor> by_name = read_by_name();
  load_state(from, given, named_by_module(by_name));
  replace(list(), by_name, ledger_.committed(), ledger_.loss_scale());
}

void TrainerState::replace(const std::vector<StateListing>& listings,
                           const std::map<std::string, at::Tensor>& state,
                           std::int64_t updates,
                           const std::optional<LossScale>& scale) {
  std::vector<std::vector<StateTensor>> by_rank;
  for (const StateListing& listing : listings) {
    by_rank.emplace_back();
    for (const std::string& name : listing.names) {
      by_rank.back().push_back({name, tensor_or_share(state, name)});
    }
  }
  const auto write = [&] {
    crew_.write_state(by_rank, updates);
    unused_.replace(state);
    programs_.unused_changed();
  };
  replace_by(write, updates, first_scale(options_.loss_scaling, scale));
}

void TrainerState::replace_by(const std::function<void()>& write,
                              std::int64_t updates,
                              const std::optional<LossScale>& scale) {
  try {
    write();
  } catch (const Error& error) {
    ledger_.lose(error);
    throw;
  }
  ledger_.resume(updates, scale);
  replaced_at_ = updates;
}

}  // namespace stagecraft
