#include "stagecraft/actors/trainer/state/trainer_checkpoint.h"

#include <cstddef>
#include <map>
#include <utility>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/trainer/state/state_shares.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

ExpectedState expected_state(const TrainerState& state,
                             const std::vector<StateListing>& listings,
                             const RunFacts& run) {
  ExpectedState expected{.seed = run.seed, .optimizer = run.optimizer, .tensors = {}};
  const auto add = [&](const std::string& name, const std::string& type, at::IntArrayRef shape) {
    expected.tensors.push_back({name, type, shape.vec()});
  };
  for (const StateTensor& kept : state.unused()) {
    add(kept.name, c10::toString(kept.tensor.scalar_type()), kept.tensor.sizes());
  }
  for (const StateListing& listing : listings) {
    for (std::size_t i = 0; i < listing.names.size(); ++i) {
      if (const auto share = share_named(listing.names[i])) {
        add(share->name, listing.types[i], whole_sizes(state.graph(), share->name));
      } else {
        add(listing.names[i], listing.types[i], listing.shapes[i]);
      }
    }
  }
  return expected;
}

}  // namespace

Checkpoint take_checkpoint(TrainerState& state, const RunFacts& run) {
  std::vector<StateTensor> tensors = state.read();  // first: it waits for the steps in progress
  return {.step = state.updates(),
          .seed = run.seed.value(),
          .optimizer = run.optimizer,
          .tensors = std::move(tensors),
          .processors = run.processors,
          .loss_scale = state.loss_scale()};
}

void restore(const Checkpoint& checkpoint, TrainerState& state, const RunFacts& run) {
  const std::vector<StateListing> listings = state.list();
  check_same_model(checkpoint, expected_state(state, listings, run));
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    by_name[name] = tensor;
  }
  state.replace(listings, by_name, checkpoint.step, checkpoint.loss_scale);
  if (const std::string other = other_processors(checkpoint.processors, run.processors);
      !other.empty()) {
    log(Level::Info, "checkpoint of other processors", {{"why", other}});
  }
}

}  // namespace stagecraft
