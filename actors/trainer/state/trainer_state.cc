#include "stagecraft/actors/trainer/state/trainer_state.h"

#include <cstddef>
#include <deque>
#include <exception>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/messages/state_listing.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft {
namespace {

/// Returns the end of the entries that are read together from `begin` on.
std::size_t end_of_batch(const std::vector<StateEntry>& contents, std::size_t begin) {
  std::size_t end = begin + 1;
  for (std::uint64_t bytes = contents[begin].bytes; end < contents.size(); ++end) {
    bytes += contents[end].bytes;
    if (bytes > kReadBytes) {
      break;
    }
  }
  return end;
}

/// Returns the parts of these entries by rank, in the order of the entries.
std::map<Rank, std::deque<at::Tensor>> read_parts(Crew& crew, std::span<const StateEntry> entries) {
  std::map<Rank, StatePick> picks;
  for (const StateEntry& entry : entries) {
    for (const StatePart& part : entry.parts) {
      StatePick& pick = picks.try_emplace(part.rank, StatePick{.rank = part.rank}).first->second;
      pick.positions.push_back(part.position);
    }
  }
  std::vector<StatePick> all;
  for (auto& [rank, pick] : picks) {
    all.push_back(std::move(pick));
  }
  std::vector<std::vector<StateTensor>> read = crew.read_state(all);
  std::map<Rank, std::deque<at::Tensor>> parts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    SC_CHECK(read[i].size() == all[i].positions.size(), "a rank sends what it was asked for");
    for (StateTensor& state : read[i]) {
      parts[all[i].rank].push_back(std::move(state.tensor));
    }
  }
  return parts;
}

}  // namespace

StateOfRank states_from(const std::vector<StateListing>& listings, const StateSource& source) {
  return [&listings, &source](Rank rank) {
    std::vector<StateTensor> state;
    for (const std::string& name : listings[rank.index()].names) {
      state.push_back({name, source(name)});
    }
    return state;
  };
}

TrainerState::TrainerState(Program program,
                           const TrainerOptions& options,
                           Crew& crew,
                           StepLedger& ledger,
                           KnownPrograms& programs,
                           UnusedState& unused,
                           std::function<std::string(std::int64_t updates)> facts)
    : program_(std::move(program)),
      options_(options),
      crew_(crew),
      ledger_(ledger),
      programs_(programs),
      unused_(unused),
      facts_(std::move(facts)) {}

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

std::vector<StateEntry> TrainerState::contents() {
  require_weights();
  return contents_of(unused_.tensors(), graph(), list());
}

void TrainerState::read_each(const std::vector<StateEntry>& contents,
                             const std::function<void(StateTensor)>& visit) {
  require_weights();
  std::map<std::string, at::Tensor> unused;
  for (const StateTensor& kept : unused_.tensors()) {
    unused[kept.name] = kept.tensor;
  }
  for (std::size_t begin = 0; begin < contents.size();) {
    const std::size_t end = end_of_batch(contents, begin);
    const auto batch = std::span(contents).subspan(begin, end - begin);
    std::map<Rank, std::deque<at::Tensor>> parts = read_parts(crew_, batch);
    for (const StateEntry& entry : batch) {
      if (entry.parts.empty()) {
        visit({entry.name, unused.at(entry.name).clone()});
        continue;
      }
      std::vector<at::Tensor> of_entry;
      for (const StatePart& part : entry.parts) {
        of_entry.push_back(std::move(parts.at(part.rank).front()));
        parts.at(part.rank).pop_front();
      }
      visit({entry.name, joined(entry, of_entry)});
    }
    begin = end;
  }
}

std::vector<StateTensor> TrainerState::read() {
  std::vector<StateTensor> all;
  read_each(contents(), [&](StateTensor state) { all.push_back(std::move(state)); });
  return all;
}

std::map<std::string, at::Tensor> TrainerState::read_by_name(
    const std::vector<StateEntry>& contents) {
  std::map<std::string, at::Tensor> by_name;
  read_each(contents, [&](const StateTensor& read) { by_name[read.name] = read.tensor; });
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
  return kept_scale(options_.loss_scaling, ledger_.loss_scale());
}

ModuleState TrainerState::read_module() {
  std::vector<StateEntry> of_module = contents();
  std::erase_if(of_module, [](const StateEntry& entry) {
    return !entry.name.starts_with(kWeight) && !entry.name.starts_with(kBuffer);
  });
  return named_by_module(read_by_name(of_module));
}

ModuleState TrainerState::read_averages() {
  if (!options_.average) {
    throw Error(Errc::UsageArgument,
                "averages() needs steps that average the weights: set TrainerOptions::average");
  }
  std::vector<StateEntry> averaged = contents();
  std::erase_if(averaged, [](const StateEntry& entry) {
    return is_of_optimizer(entry.name) && !entry.name.starts_with(kAverage);
  });
  std::map<std::string, at::Tensor> by_name = read_by_name(averaged);
  for (const auto& [name, tensor] : by_name) {
    if (name.starts_with(kAverage)) {
      by_name.at(state_name(kWeight, name.substr(kAverage.size()))) = tensor;
    }
  }
  return named_by_module(by_name);
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
  const std::vector<std::vector<StateTensor>> read = crew_.read_gradients();
  std::vector<StateListing> listings;
  for (const std::vector<StateTensor>& of_rank : read) {
    add_tensors(listings.emplace_back(), of_rank);
  }
  std::map<std::string, at::Tensor> by_name;
  for (const StateEntry& entry : contents_of({}, graph(), listings)) {
    std::vector<at::Tensor> parts;
    for (const StatePart& part : entry.parts) {
      parts.push_back(read[part.rank.index()][static_cast<std::size_t>(part.position)].tensor);
    }
    by_name.emplace(entry.name, joined(entry, parts));
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
  std::map<std::string, at::Tensor> by_name = read_by_name(contents());
  load_state(from, given, named_by_module(by_name));
  for (auto& [name, tensor] : by_name) {
    for (const std::string_view kind : {kMaster, kAverage}) {
      if (name.starts_with(kind)) {
        tensor = by_name.at(state_name(kWeight, name.substr(kind.size()))).to(tensor.scalar_type());
      }
    }
  }
  const auto source = [&](const std::string& name) { return tensor_or_share(by_name, name); };
  replace(list(), source, ledger_.committed(), ledger_.loss_scale(), frozen_updates(), [] {});
}

void TrainerState::replace(const std::vector<StateListing>& listings,
                           const StateSource& source,
                           std::int64_t updates,
                           const std::optional<LossScale>& scale,
                           const std::optional<FrozenUpdates>& frozen,
                           const std::function<void()>& forgotten) {
  const auto replace_what_is_here = [&] {
    unused_.replace(source);
    programs_.unused_changed();
    ledger_.resume(updates, first_scale(options_.loss_scaling, scale), frozen);
    replaced_at_ = updates;
    forgotten();
  };
  write_ranks([&] {
    crew_.write_state(
        states_from(listings, source),
        updates,
        [&] { return facts(updates); },
        replace_what_is_here);
  });
}

void TrainerState::go_back(const std::function<void()>& write,
                           std::int64_t updates,
                           const std::optional<CheckpointFacts>& facts) {
  write_ranks(write);
  if (facts) {
    ledger_.resume(updates, facts->loss_scale.value_or(LossScale()), facts->frozen);
  } else {
    ledger_.resume(updates);
  }
  replaced_at_ = updates;
}

void TrainerState::write_ranks(const std::function<void()>& write) {
  try {
    write();
  } catch (...) {  // also a lack of memory for what is read
    ledger_.lose(foreign_error(std::current_exception()));
    throw;
  }
}

}  // namespace stagecraft
