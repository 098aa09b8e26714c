#include "stagecraft/actors/trainer/state/trainer_checkpoint.h"

#include <utility>

#include "stagecraft/actors/trainer/state/state_contents.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

/// Requires: no step is in progress.
CheckpointFacts facts_of(const TrainerState& state, const RunFacts& run) {
  return {.step = state.updates(),
          .seed = run.seed.value(),
          .optimizer = run.optimizer,
          .processors = run.processors,
          .loss_scale = state.loss_scale(),
          .loop = run.loops->at(state.updates()),
          .frozen = state.frozen_updates()};
}

ExpectedState expected_state(const TrainerState& state,
                             const std::vector<StateListing>& listings,
                             const RunFacts& run) {
  const std::vector<StateEntry> contents = contents_of(state.unused(), state.graph(), listings);
  return {
      .seed = run.seed, .optimizer = run.optimizer, .tensors = {contents.begin(), contents.end()}};
}

}  // namespace

Checkpoint take_checkpoint(TrainerState& state, const RunFacts& run) {
  std::vector<StateTensor> tensors = state.read();  // first: it waits for the steps in progress
  return {facts_of(state, run), std::move(tensors)};
}

std::unique_ptr<CheckpointSave> begin_save(const std::function<std::string(std::int64_t)>& path_of,
                                           TrainerState& state,
                                           const RunFacts& run) {
  const std::vector<StateEntry> contents = state.contents();  // first, as above
  CheckpointHeader header{facts_of(state, run), {contents.begin(), contents.end()}};
  const std::string path = path_of(header.step);  // before errors that a caller names by it
  auto save = std::make_unique<CheckpointSave>(path, std::move(header));
  state.read_each(contents, [&](const StateTensor& read) { save->add(read.tensor); });
  return save;
}

void restore(const CheckpointHeader& header,
             const StateSource& source,
             TrainerState& state,
             const RunFacts& run,
             const std::function<void()>& forgotten) {
  const std::vector<StateListing> listings = state.list();
  check_same_model(header, expected_state(state, listings, run));
  state.replace(listings, source, header.step, header.loss_scale, header.frozen, forgotten);
  if (const std::string other = other_processors(header.processors, run.processors);
      !other.empty()) {
    log(Level::Info, "checkpoint of other processors", {{"why", other}});
  }
}

}  // namespace stagecraft
