#include "stagecraft/tools/train/run/run_checkpoints.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagecraft::tools {

RunCheckpoints::RunCheckpoints(const KeepingOptions& options,
                               const std::optional<std::int64_t>& resumed_at,
                               Progress& progress)
    : progress_(progress),
      every_(options.save_every),
      keep_(static_cast<std::size_t>(options.keep)) {
  if (options.save_dir) {
    checkpoints_.emplace(*options.save_dir, static_cast<int>(options.keep));
    last_ = options.save_dir == options.resume ? resumed_at.value_or(-1) : -1;
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
    last_ = std::max(last_, trainer.steps());  // a watcher may ask for a step that is repeated
  }
}

void RunCheckpoints::tell_done() {
  if (checkpoints_) {
    tell(checkpoints_->done());
  }
}

std::unique_ptr<CheckpointReader> RunCheckpoints::newest() {
  if (checkpoints_) {
    tell(checkpoints_->wait());
  }
  while (!saved_.empty()) {
    const auto newest = std::prev(saved_.end());
    try {
      return std::make_unique<CheckpointReader>(newest->second);
    } catch (const Error& error) {
      progress_.note(
          fmt::format("note: a checkpoint is passed over: {}\n", error.message()),
          {{"event", "passed_over"}, {"file", newest->second}, {"why", error.message()}});
      saved_.erase(newest);
      last_ = saved_.empty() ? -1 : saved_.rbegin()->first;
    }
  }
  return nullptr;
}

void RunCheckpoints::close(Trainer& trainer) {
  if (!checkpoints_) {
    return;
  }
  if (trainer.steps() > last_) {
    save_now(trainer);
  }
  tell(checkpoints_->wait());
  if (failure_) {
    throw Error(*failure_);
  }
}

void RunCheckpoints::tell(const std::optional<SavedCheckpoint>& saved) {
  if (!saved) {
    return;
  }
  failure_ = saved->failure;
  if (!failure_) {
    saved_[saved->step] = saved->path;
    if (saved_.size() > keep_) {
      saved_.erase(saved_.begin());
    }
    progress_.saved(saved->step, saved->path);
    return;
  }
  if (last_ == saved->step) {
    last_ = saved_.empty() ? -1 : saved_.rbegin()->first;  // a watcher may ask for it again
  }
  const std::string why = failure_->message();
  progress_.note(
      fmt::format("note: the checkpoint of step {} was not saved: {}\n", saved->step, why),
      {{"event", "not_saved"}, {"step", saved->step}, {"why", why}});
}

}  // namespace stagecraft::tools
