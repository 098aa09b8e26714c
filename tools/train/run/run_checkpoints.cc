#include "stagecraft/tools/train/run/run_checkpoints.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagecraft::tools {

RunCheckpoints::RunCheckpoints(const KeepingOptions& options, Progress& progress)
    : progress_(progress), every_(options.save_every) {
  if (options.save_dir) {
    checkpoints_.emplace(*options.save_dir, static_cast<int>(options.keep));
  }
}

void RunCheckpoints::after_step(Trainer& trainer) {
  tell_done();
  if (every_ && trainer.steps() % *every_ == 0 && trainer.steps() > last_) {
    save_now(trainer);
  }
}

void RunCheckpoints::save_now(Trainer& trainer) {
  if (checkpoints_ && last_ != trainer.steps()) {
    tell(checkpoints_->save(trainer));
    last_ = trainer.steps();
  }
}

void RunCheckpoints::tell_done() {
  if (checkpoints_) {
    tell(checkpoints_->done());
  }
}

std::optional<std::string> RunCheckpoints::newest() {
  if (checkpoints_) {
    tell(checkpoints_->wait());
  }
  return newest_;
}

void RunCheckpoints::close(Trainer& trainer) {
  if (!checkpoints_) {
    return;
  }
  save_now(trainer);
  tell(checkpoints_->wait());
  if (failure_) {
    throw Error(*failure_);
  }
}

void RunCheckpoints::tell(const std::optional<SavedCheckpoint>& saved) {
  if (!saved) {
    return;
  }
  if (!saved->failure) {
    newest_ = saved->path;
    progress_.saved(saved->step, saved->path);
    return;
  }
  if (last_ == saved->step) {
    last_ = -1;  // a watcher may ask for it again
  }
  const std::string why = saved->failure->message();
  progress_.note(
      fmt::format("note: the checkpoint of step {} was not written: {}\n", saved->step, why),
      {{"event", "not_saved"}, {"step", saved->step}, {"why", why}});
  failure_ = failure_ ? failure_ : saved->failure;
}

}  // namespace stagecraft::tools
