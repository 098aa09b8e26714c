#include "stagecraft/futures/transport/mailbox.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr std::string_view kClosed = "this end of the transport is closed";
constexpr std::string_view kOver = "the epoch is over";

Error ended_receive(
    Errc code, std::string_view reason, Rank from, const Tag& tag, const Error& why) {
  Error error(code, fmt::format("the receive of {} ended: {}", to_string(tag), reason));
  ErrorContext context;
  context.microbatch = tag.microbatch;
  context.peer = peer_name(from);
  return error.with(context).because(why);
}

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

}  // namespace

Mailbox::~Mailbox() {
  close(Error(Errc::TransportClosed, "the network of this process is gone"));
}

void Mailbox::deliver(Rank from, const Tag& tag, at::Tensor tensor) {
  std::optional<Promise<at::Tensor>> waiting;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_ || over(tag.plan, tag.epoch) != nullptr) {
      ++refused_;
      return;
    }
    const auto at = lane({from, tag});
    auto& receives = at->second.receives;
    if (receives.empty()) {
      bytes_waiting_ += bytes_of(tensor);
      at->second.tensors.push_back(std::move(tensor));
      return;
    }
    waiting = std::move(receives.front());
    receives.pop_front();
    retire_if_empty(at);
  }
  waiting->set_value(std::move(tensor));
}

Future<at::Tensor> Mailbox::receive(Rank from, const Tag& tag) {
  Promise<at::Tensor> promise;
  Future<at::Tensor> future = promise.future();
  at::Tensor arrived;
  {
    const std::scoped_lock lock(mutex_);
    if (std::optional<Error> refused = refusal(from, tag)) {
      // No other code has the future yet, so no callback runs under the lock.
      promise.set_error(*std::move(refused));
      return future;
    }
    const auto at = lane({from, tag});
    auto& tensors = at->second.tensors;
    if (tensors.empty()) {
      at->second.receives.push_back(std::move(promise));
      return future;
    }
    arrived = std::move(tensors.front());
    tensors.pop_front();
    bytes_waiting_ -= bytes_of(arrived);
    retire_if_empty(at);
  }
  promise.set_value(std::move(arrived));
  return future;
}

void Mailbox::advance(PlanId plan, Epoch current, const Error& why) {
  std::vector<Lanes::node_type> removed;
  {
    const std::scoped_lock lock(mutex_);
    const auto known = aborted_.find(plan);
    if (closed_ || (known != aborted_.end() && current <= known->second.current)) {
      return;
    }
    aborted_.insert_or_assign(plan, Aborted{current, why});
    newest_over_ = std::max(newest_over_.load(), current.value - 1);
    removed = remove_if([plan, current](const Key& key) {
      return key.tag.plan == plan && key.tag.epoch < current;
    });
  }
  fail(removed, Errc::WorkerAborted, kOver, why);
}

void Mailbox::close(const Error& why) {
  std::vector<Lanes::node_type> removed;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) {
      return;
    }
    closed_ = why;
    newest_over_ = std::numeric_limits<std::int64_t>::max();
    removed = remove_if([](const Key&) { return true; });
  }
  fail(removed, Errc::TransportClosed, kClosed, why);
}

bool Mailbox::accepts(const Tag& tag) const {
  if (tag.epoch.value > newest_over_.load(std::memory_order_acquire)) {
    return true;
  }
  const std::scoped_lock lock(mutex_);
  return !closed_ && over(tag.plan, tag.epoch) == nullptr;
}

void Mailbox::check_open() const {
  const std::scoped_lock lock(mutex_);
  if (closed_) {
    throw Error(Errc::TransportClosed, std::string(kClosed)).because(*closed_);
  }
}

void Mailbox::require_current(PlanId plan, Epoch epoch) const {
  if (epoch.value > newest_over_.load(std::memory_order_acquire)) {
    return;
  }
  check_open();
  const std::scoped_lock lock(mutex_);
  if (const Error* why = over(plan, epoch)) {
    throw Error(Errc::WorkerAborted, std::string(kOver)).because(*why);
  }
}

std::uint64_t Mailbox::refused() const {
  const std::scoped_lock lock(mutex_);
  return refused_;
}

std::int64_t Mailbox::bytes_waiting() const {
  const std::scoped_lock lock(mutex_);
  return bytes_waiting_;
}

void Mailbox::fail(std::vector<Lanes::node_type>& removed,
                   Errc code,
                   std::string_view reason,
                   const Error& why) {
  for (Lanes::node_type& lane : removed) {
    for (Promise<at::Tensor>& receive : lane.mapped().receives) {
      receive.set_error(ended_receive(code, reason, lane.key().from, lane.key().tag, why));
    }
  }
}

std::optional<Error> Mailbox::refusal(Rank from, const Tag& tag) const {
  if (closed_) {
    return ended_receive(Errc::TransportClosed, kClosed, from, tag, *closed_);
  }
  if (const Error* why = over(tag.plan, tag.epoch)) {
    return ended_receive(Errc::WorkerAborted, kOver, from, tag, *why);
  }
  return std::nullopt;
}

const Error* Mailbox::over(PlanId plan, Epoch epoch) const {
  const auto found = aborted_.find(plan);
  return found != aborted_.end() && epoch < found->second.current ? &found->second.why : nullptr;
}

Mailbox::Lanes::iterator Mailbox::lane(const Key& key) {
  if (spare_.empty()) {
    return lanes_.try_emplace(key).first;
  }
  Lanes::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = key;
  auto result = lanes_.insert(std::move(node));
  if (!result.inserted) {
    spare_.push_back(std::move(result.node));
  }
  return result.position;
}

void Mailbox::retire_if_empty(Lanes::iterator lane) {
  if (lane->second.tensors.empty() && lane->second.receives.empty()) {
    spare_.push_back(lanes_.extract(lane));
  }
}

template <class Predicate>
std::vector<Mailbox::Lanes::node_type> Mailbox::remove_if(Predicate predicate) {
  std::vector<Lanes::node_type> removed;
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    const auto next = std::next(lane);
    if (predicate(lane->first)) {
      for (const at::Tensor& tensor : lane->second.tensors) {
        bytes_waiting_ -= bytes_of(tensor);
      }
      removed.push_back(lanes_.extract(lane));
    }
    lane = next;
  }
  return removed;
}

}  // namespace stagecraft
