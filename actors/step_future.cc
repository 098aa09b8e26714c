#include "stagecraft/actors/step_future.h"

#include <mutex>
#include <optional>
#include <utility>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

double bubble_of(const std::vector<RankTimes>& ranks, double seconds) {
  double computing = 0.0;
  for (const RankTimes& t : ranks) {
    computing += t.forward + t.backward + t.update;
  }
  const double whole = static_cast<double>(ranks.size()) * seconds;
  return whole > 0.0 ? (whole - computing) / whole : 0.0;
}

StepResult result_of(const StepOutcome& outcome, std::vector<double> losses) {
  StepResult result;
  result.step = outcome.step.value;
  for (const double loss : losses) {
    result.mean_loss += loss / static_cast<double>(losses.size());
  }
  result.losses = std::move(losses);
  result.gradient_norm = outcome.gradient_norm;
  result.seconds = outcome.seconds;
  result.ranks = outcome.ranks;
  result.timelines = outcome.timelines;
  result.bubble = bubble_of(outcome.ranks, outcome.seconds);
  return result;
}

}  // namespace

/// The mutex makes the first get() the only one that reads losses: a value can be fetched once.
struct StepFuture::Cell {
  Future<StepOutcome> outcome;
  ReadLosses read;
  std::mutex reading;
  std::optional<StepResult> result;
};

StepFuture::StepFuture(Future<StepOutcome> outcome, ReadLosses read)
    : cell_(std::make_shared<Cell>()) {
  cell_->outcome = std::move(outcome);
  cell_->read = std::move(read);
}

StepFuture::Cell& StepFuture::cell() const {
  if (cell_ == nullptr) {
    throw Error(Errc::UsageArgument,
                "this StepFuture is of no step: it was made empty or moved from; assign it what "
                "Trainer::step returns");
  }
  return *cell_;
}

bool StepFuture::ready() const {
  return cell().outcome.ready();
}

bool StepFuture::wait_until(Deadline deadline) const {
  return cell().outcome.wait_until(deadline);
}

StepResult StepFuture::get() const {
  Cell& c = cell();
  const StepOutcome outcome = c.outcome.get();
  const std::scoped_lock lock(c.reading);
  if (!c.result) {
    c.result = result_of(outcome, c.read(outcome));
  }
  return *c.result;
}

}  // namespace stagecraft
