#include "stagecraft/tests/support/faulty_transport.h"

#include <limits>
#include <utility>

namespace stagecraft {
namespace {

/// Nobody sends with this edge (TG-1), so a receive of it gets no tensor until it is aborted or
/// closed.
constexpr EdgeId kNowhere{std::numeric_limits<std::int32_t>::min() + 1};

}  // namespace

void FaultyTransport::drop_send(std::int64_t nth) {
  const std::scoped_lock lock(mutex_);
  send_faults_[nth] = std::nullopt;
}

void FaultyTransport::drop_receive(std::int64_t nth) {
  const std::scoped_lock lock(mutex_);
  receive_faults_[nth] = std::nullopt;
}

void FaultyTransport::fail_send(std::int64_t nth, Error error) {
  const std::scoped_lock lock(mutex_);
  send_faults_[nth] = std::move(error);
}

void FaultyTransport::fail_receive(std::int64_t nth, Error error) {
  const std::scoped_lock lock(mutex_);
  receive_faults_[nth] = std::move(error);
}

void FaultyTransport::hold_sends() {
  const std::scoped_lock lock(mutex_);
  holding_ = true;
}

void FaultyTransport::release_sends() {
  // New sends queue up behind the held ones, so that none overtakes (keeps T-1).
  while (true) {
    std::vector<HeldSend> batch;
    {
      const std::scoped_lock lock(mutex_);
      batch.swap(held_);
      if (batch.empty()) {
        holding_ = false;
        return;
      }
    }
    for (HeldSend& held : batch) {
      ForwardingTransport::send(held.to, held.tag, std::move(held.tensor));
    }
  }
}

std::int64_t FaultyTransport::sends_held() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<std::int64_t>(held_.size());
}

void FaultyTransport::send(Rank to, const Tag& tag, at::Tensor tensor) {
  {
    const std::scoped_lock lock(mutex_);
    const auto fault = send_faults_.find(++sends_);
    if (fault != send_faults_.end()) {
      if (fault->second) {
        throw Error(*fault->second);
      }
      return;
    }
    if (holding_) {
      held_.push_back({to, tag, std::move(tensor)});
      return;
    }
  }
  ForwardingTransport::send(to, tag, std::move(tensor));
}

Future<at::Tensor> FaultyTransport::receive(Rank from, const Tag& tag) {
  Tag asked = tag;
  {
    const std::scoped_lock lock(mutex_);
    const auto fault = receive_faults_.find(++receives_);
    if (fault != receive_faults_.end()) {
      if (fault->second) {
        throw Error(*fault->second);
      }
      asked.edge = kNowhere;
    }
  }
  return ForwardingTransport::receive(from, asked);
}

void FaultyTransport::close(const Error& why) {
  std::vector<HeldSend> dropped;
  {
    const std::scoped_lock lock(mutex_);
    dropped.swap(held_);
    holding_ = false;
  }
  ForwardingTransport::close(why);
}

}  // namespace stagecraft
