#include "stagecraft/actors/driver/step_ledger.h"

#include <iterator>
#include <utility>

#include "stagecraft/base/clock.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

StepLedger::StepLedger(const std::optional<LossScaling>& scaling,
                       GroupUpdates groups,
                       StateFacts facts)
    : scaling_(scaling),
      facts_(std::move(facts)),
      scales_{{0, first_scale(scaling)}},
      groups_(std::move(groups)) {}

EnteredStep StepLedger::enter(StepInput input, int most) {
  const process_end::Elsewhere waiting;
  std::unique_lock lock(mutex_);
  Clock::current()->wait(
      ended_, lock, [&] { return closed_ || under_way_.size() < static_cast<std::size_t>(most); });
  if (closed_) {
    throw Error(*closed_);
  }
  const Submission submission(numbers_++);
  Entry& entry = under_way_[submission];
  entry.input = std::move(input);
  return {submission, entry.promise.future()};
}

Submission StepLedger::next_request() {
  const std::scoped_lock lock(mutex_);
  return Submission(numbers_++);
}

std::optional<StepInput> StepLedger::start(Submission submission) {
  const std::scoped_lock lock(mutex_);
  const auto found = under_way_.find(submission);
  return found == under_way_.end() ? std::nullopt
                                   : std::exchange(found->second.input, std::nullopt);
}

std::vector<std::int64_t> StepLedger::begin_update(const GroupFreezes& frozen) {
  const std::scoped_lock lock(mutex_);
  return groups_.begin(updates_in(committed_), frozen);
}

std::optional<StepLedger::Entry> StepLedger::remove(Submission submission, bool committed) {
  const std::scoped_lock lock(mutex_);
  committed_ += committed ? 1 : 0;
  const auto found = under_way_.find(submission);
  if (found == under_way_.end()) {
    return std::nullopt;
  }
  Entry entry = std::move(found->second);
  under_way_.erase(found);
  return entry;
}

void StepLedger::complete(Submission submission, StepResult result, bool committed) {
  if (committed) {
    const std::scoped_lock lock(mutex_);
    note_update(result.skipped);
  }
  if (auto entry = remove(submission, committed)) {
    entry->promise.set_value(std::move(result));
  }
  ended_.notify_all();
}

void StepLedger::fail(Submission submission, const Error& error) {
  if (auto entry = remove(submission, false)) {
    entry->promise.set_error(error);
  }
  ended_.notify_all();
}

void StepLedger::lose(const Error& why) {
  const std::scoped_lock lock(mutex_);
  if (!lost_) {
    lost_ = why;
  }
}

std::optional<Error> StepLedger::lost() const {
  const std::scoped_lock lock(mutex_);
  return lost_;
}

void StepLedger::resume(std::int64_t committed,
                        std::optional<LossScale> scale,
                        const std::optional<FrozenUpdates>& frozen) {
  const std::scoped_lock lock(mutex_);
  committed_ = committed;
  const LossScale next = scale ? *scale : scale_after(committed);
  scales_.erase(scales_.upper_bound(committed), scales_.end());
  scales_[committed] = next;
  if (scale) {
    groups_.replace(updates_in(committed), frozen);
  } else {
    groups_.go_back(updates_in(committed));
  }
  lost_.reset();
}

std::int64_t StepLedger::committed() const {
  const std::scoped_lock lock(mutex_);
  return committed_;
}

LossScale StepLedger::loss_scale() const {
  const std::scoped_lock lock(mutex_);
  return scale_after(committed_);
}

FrozenUpdates StepLedger::frozen_updates() const {
  const std::scoped_lock lock(mutex_);
  return groups_.frozen(updates_in(committed_));
}

std::string StepLedger::facts(std::int64_t updates, std::uint64_t seed) const {
  if (!facts_) {
    return {};
  }
  std::unique_lock lock(mutex_);
  const LossScale scale = scale_after(updates);
  const FrozenUpdates frozen = groups_.frozen(updates_in(updates));
  lock.unlock();
  return facts_(updates, seed, scale, frozen);
}

void StepLedger::note_partial_update(bool skipped) {
  const std::scoped_lock lock(mutex_);
  note_update(skipped);
}

LossScale StepLedger::scale_after(std::int64_t updates) const {
  const auto& [since, scale] = *std::prev(scales_.upper_bound(updates));
  LossScale now = scale;
  now.good += scaling_ ? updates - since : 0;
  return now;
}

std::int64_t StepLedger::updates_in(std::int64_t steps) const {
  return steps - scale_after(steps).skipped;
}

void StepLedger::note_update(bool skipped) {
  if (!skipped) {
    groups_.end(updates_in(committed_));
  }
  if (!scaling_) {
    return;
  }
  const LossScale next = after(scale_after(committed_), skipped, *scaling_);
  if (next.good == 0) {
    scales_[committed_ + 1] = next;
  }
}

bool StepLedger::has_steps() const {
  const std::scoped_lock lock(mutex_);
  return !under_way_.empty();
}

void StepLedger::drain() {
  const process_end::Elsewhere waiting;
  std::unique_lock lock(mutex_);
  Clock::current()->wait(ended_, lock, [&] { return under_way_.empty(); });
}

std::map<Submission, StepLedger::Entry> StepLedger::refuse_from_now_on(const Error& why) {
  std::map<Submission, Entry> under_way;
  const std::scoped_lock lock(mutex_);
  closed_ = closed_ ? closed_ : why;
  under_way.swap(under_way_);
  return under_way;
}

void StepLedger::close() {
  for (auto& [submission, entry] : refuse_from_now_on(
           Error(Errc::ClusterClosed, "the trainer was shut down: it takes no more steps"))) {
    entry.promise.cancel();
  }
  ended_.notify_all();
}

void StepLedger::fail_under_way(const Error& why) {
  std::map<Submission, Entry> under_way;
  {
    const std::scoped_lock lock(mutex_);
    under_way.swap(under_way_);
  }
  for (auto& [submission, entry] : under_way) {
    entry.promise.set_error(why);
  }
  ended_.notify_all();
}

void StepLedger::break_down(const Error& why) {
  for (auto& [submission, entry] : refuse_from_now_on(why)) {
    entry.promise.set_error(why);
  }
  ended_.notify_all();
}

}  // namespace stagecraft
