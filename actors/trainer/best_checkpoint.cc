#include "stagecraft/actors/trainer/best_checkpoint.h"

#include <optional>
#include <utility>

#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Returns whether the file is a checkpoint of the best state.
bool holds_best(const std::string& path, const WatchState& watch) {
  try {
    const CheckpointReader file(path);
    const std::optional<LoopState>& loop = file.header().loop;
    return file.header().step == watch.best_step && loop && loop->watch.metric == watch.metric &&
           loop->watch.best == watch.best;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

BestCheckpoint::BestCheckpoint(std::string path) : path_(std::move(path)) {}

void BestCheckpoint::save(Trainer& trainer) {
  if (!path_.empty()) {
    trainer.save(path_);
    has_saved_ = true;
  }
}

std::string BestCheckpoint::path_if_of(const WatchState& watch) const {
  return !path_.empty() && (has_saved_ || holds_best(path_, watch)) ? path_ : "";
}

}  // namespace stagecraft
