/// ForwardingTransport passes every call on to another transport. A transport that counts, copies
/// or disturbs what another one moves derives from it, and overrides what it changes. What is lent
/// goes through its send.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::shared_ptr<Transport> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] Rank self() const override { return inner_->self(); }
  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    inner_->send(to, tag, std::move(tensor));
  }
  [[nodiscard]] at::Tensor lendable(std::int64_t elements, at::ScalarType dtype) override {
    return inner_->lendable(elements, dtype);
  }
  [[nodiscard]] bool hands_over(Rank to) const override { return inner_->hands_over(to); }
  [[nodiscard]] std::string host_of(Rank rank) const override { return inner_->host_of(rank); }
  [[nodiscard]] Route route_to(Rank to) const override { return inner_->route_to(to); }
  [[nodiscard]] Future<at::Tensor> receive(Rank from, const Tag& tag) override {
    return inner_->receive(from, tag);
  }
  void advance(PlanId plan, Epoch current, const Error& why) override {
    inner_->advance(plan, current, why);
  }
  void require_current(PlanId plan, Epoch epoch) const override {
    inner_->require_current(plan, epoch);
  }
  [[nodiscard]] std::uint64_t refused() const override { return inner_->refused(); }
  [[nodiscard]] std::int64_t bytes_waiting() const override { return inner_->bytes_waiting(); }
  void close(const Error& why) override { inner_->close(why); }

 private:
  const std::shared_ptr<Transport> inner_;
};

}  // namespace stagecraft
