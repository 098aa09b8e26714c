#include "stagecraft/actors/executor/mirror/mirror.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/mirror/packed_state.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

/// Returns another plan id. Any other bits will do, since plan ids are random.
PlanId plan_of_mirrors(PlanId plan) {
  return PlanId(static_cast<std::int64_t>(
      hash_combine(static_cast<std::size_t>(plan.value), 0x6d6972726f72)));
}

Tag mirror_tag(PlanId plan, Epoch epoch, Submission round) {
  return {.plan = plan, .epoch = epoch, .submission = round, .edge = EdgeId(0)};
}

/// Returns whether this is the only owner: all others have let go of the tensor and finished with
/// it.
bool is_ours_alone(const at::Tensor& tensor) {
  const bool alone =
      tensor.defined() && tensor.use_count() == 1 && tensor.storage().use_count() == 1;
  std::atomic_thread_fence(std::memory_order_acquire);  // synchronizes with the last owner
  return alone;
}

at::Tensor required(at::Tensor copy, std::int64_t updates) {
  if (!copy.defined()) {
    throw Error(Errc::WorkerLost,
                fmt::format("there is no copy of the state after {} updates any more: load a "
                            "checkpoint",
                            updates));
  }
  return copy;
}

}  // namespace

Mirror::Mirror(const RankSetup& setup,
               std::shared_ptr<Transport> transport,
               std::shared_ptr<LeftCopies> left)
    : self_(setup.rank()),
      plan_(plan_of_mirrors(setup.plan_id)),
      run_(setup.options.run),
      transport_(std::move(transport)),
      process_(run_.empty() ? nullptr : std::move(left)) {
  const std::vector<Rank>& ring = setup.ranks;
  if (ring.size() < 2) {
    throw Error(Errc::UsageArgument,
                "mirror needs a neighbor to keep the copies, and this schedule runs on one rank: "
                "leave it out, or use a schedule of more rows");
  }
  const auto self = std::ranges::find(ring, self_);
  SC_CHECK(self != ring.end(), "a rank votes");
  keeper_rank_ = self + 1 == ring.end() ? ring.front() : *(self + 1);
  before_ = self == ring.begin() ? ring.back() : *(self - 1);
}

Mirror::~Mirror() {
  if (process_ == nullptr || layout_.empty()) {  // it had no state
    return;
  }
  try {
    if (left_) {
      process_->put_back(run_, self_, std::move(*left_));
      return;
    }
    take_in();
    process_->leave(run_, self_, {.copies = keeper_, .facts = facts_, .layout = layout_});
  } catch (const std::exception& error) {  // no memory
    log(Level::Warning, "copies are not left", {{"rank", self_}, {"why", error.what()}});
  }
}

/// Takes what the rank of the trainer before has left here, the first time.
void Mirror::take_left(const std::vector<NamedTensor>& state) {
  if (process_ == nullptr || !layout_.empty()) {
    return;
  }
  for (const NamedTensor& named : state) {
    layout_ += fmt::format("{} {} [{}]\n",
                           named.name,
                           c10::toString(named.tensor.scalar_type()),
                           fmt::join(named.tensor.sizes(), ", "));
  }
  left_ = process_->take(run_, self_);
  if (left_ && left_->layout != layout_) {
    log(Level::Warning, "copies of the driver before are of another state", {{"rank", self_}});
    left_.reset();
  }
}

void Mirror::restart(Submission request,
                     std::int64_t updates,
                     std::optional<std::int64_t> kept,
                     const std::vector<NamedTensor>& state,
                     const std::string& facts) {
  take_left(state);
  if (kept && left_) {  // the state is one of them
    keeper_ = std::move(left_->copies);
    facts_ = std::move(left_->facts);
    left_.reset();
  }
  keeper_.restart(kept);
  arriving_ = {};
  epoch_ = Epoch(request.value);
  transport_->advance(plan_, epoch_, Error(Errc::WorkerAborted, "all ranks took another state"));
  begin(request, updates, state);
  note(updates, facts);
}

void Mirror::forget() {
  drop_left();
  facts_.clear();
  keeper_.restart(std::nullopt);
  arriving_ = {};
}

/// Also those that no rank of this process has taken.
void Mirror::drop_left() {
  left_.reset();
  if (process_ != nullptr) {
    process_->drop();
  }
}

void Mirror::note(std::int64_t updates, const std::string& facts) {
  if (process_ == nullptr || facts.empty()) {
    return;
  }
  facts_[updates] = facts;
  const std::vector<std::int64_t> states = keeper_.own_states();
  std::erase_if(facts_, [&](const auto& one) {
    return one.first != updates && std::ranges::find(states, one.first) == states.end();
  });
}

void Mirror::committed(Submission step,
                       std::int64_t updates,
                       const std::vector<NamedTensor>& state) {
  drop_left();
  if (!keeper_.round_under_way()) {
    begin(step, updates, state);
  }
}

/// Begins the round even after a failure, since all ranks begin the same rounds (MI-2).
void Mirror::begin(Submission round, std::int64_t updates, const std::vector<NamedTensor>& state) {
  at::Tensor copy;
  std::exception_ptr failure;
  arriving_ = {};
  try {
    arriving_ = transport_->receive(before_, mirror_tag(plan_, epoch_, round));
    copy = make_copy(state);
    transport_->send(keeper_rank_, mirror_tag(plan_, epoch_, round), copy);
  } catch (...) {
    failure = std::current_exception();
  }
  keeper_.begin(round, updates, std::move(copy));
  if (failure) {
    fail(failure);
  }
}

/// Keeps MR-2. The end of a trainer is no failure.
void Mirror::fail(const std::exception_ptr& failure) {
  keeper_.failed();
  const Error why = foreign_error(failure);
  const bool is_told = has_failed_ || why.code() == Errc::TransportClosed;
  log(is_told ? Level::Debug : Level::Warning,
      "a mirror failed and keeps its last recovery point",
      {{"rank", self_}, {"why", why.what()}});
  has_failed_ = true;
}

/// Copies the state. Reuses a copy that no rank holds any more, since fresh memory costs more than
/// the copying.
at::Tensor Mirror::make_copy(const std::vector<NamedTensor>& state) {
  const std::int64_t bytes = packed_bytes(state);
  at::Tensor copy = is_ours_alone(spare_) && spare_.numel() == bytes
                        ? std::move(spare_)
                        : at::empty({bytes}, at::TensorOptions(at::kByte));
  pack(state, copy);
  spare_ = std::exchange(last_, copy);
  return copy;
}

void Mirror::take_in() {
  if (!arriving_.valid() || !arriving_.ready()) {
    return;
  }
  const Future<at::Tensor> arrival = std::exchange(arriving_, {});
  try {
    keeper_.arrived(arrival.get());
  } catch (const Error&) {
    fail(std::current_exception());
  }
}

Submission Mirror::newest_kept() {
  take_in();
  return keeper_.newest_kept();
}

void Mirror::agreed(Submission oldest) {
  if (keeper_.agreed(oldest)) {
    has_failed_ = false;
  }
  if (!keeper_.round_under_way()) {
    arriving_ = {};  // of a round that was given up: the step may not begin another one
  }
}

MirrorStock Mirror::stock() {
  take_in();
  MirrorStock stock{.own = present().own_states(), .kept = present().kept_states()};
  if (left_) {
    std::erase_if(stock.own, [&](std::int64_t updates) { return !left_->facts.contains(updates); });
  }
  return stock;
}

std::vector<std::string> Mirror::left_facts() const {
  std::vector<std::string> facts;
  if (left_) {
    for (const std::int64_t updates : left_->copies.own_states()) {
      if (const auto found = left_->facts.find(updates); found != left_->facts.end()) {
        facts.push_back(found->second);
      }
    }
  }
  return facts;
}

at::Tensor Mirror::own(std::int64_t updates) const {
  return required(present().own(updates), updates);
}

at::Tensor Mirror::kept(std::int64_t updates) const {
  return required(present().kept(updates), updates);
}

}  // namespace stagecraft
