/// ApartTransport is the end of a rank that acts as if each other rank were in another process:
/// nothing on a device is handed over.
#pragma once

#include <memory>
#include <utility>

#include "stagecraft/futures/transport/transport.h"

namespace stagecraft::tests {

class ApartTransport final : public Transport {
 public:
  explicit ApartTransport(std::shared_ptr<Transport> end) : end_(std::move(end)) {}

  [[nodiscard]] Rank self() const override { return end_->self(); }
  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    end_->send(to, tag, std::move(tensor));
  }
  [[nodiscard]] bool hands_over(Rank /*to*/) const override { return false; }
  [[nodiscard]] Future<at::Tensor> receive(Rank from, const Tag& tag) override {
    return end_->receive(from, tag);
  }
  void advance(PlanId plan, Epoch current, const Error& why) override {
    end_->advance(plan, current, why);
  }
  void require_current(PlanId plan, Epoch epoch) const override {
    end_->require_current(plan, epoch);
  }
  [[nodiscard]] std::uint64_t refused() const override { return end_->refused(); }
  [[nodiscard]] std::int64_t bytes_waiting() const override { return end_->bytes_waiting(); }
  void close(const Error& why) override { end_->close(why); }

 private:
  const std::shared_ptr<Transport> end_;
};

}  // namespace stagecraft::tests
