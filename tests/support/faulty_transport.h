/// FaultyTransport is a transport that fails on command, for tests of code that uses one.
///
/// It decorates a real transport, fails as told and passes everything else on. Sends and receives
/// are counted from 1, from its construction. Its mutex guards the counts, the faults and the held
/// sends; the inner transport is never called under it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "stagecraft/futures/transport/forwarding_transport.h"

namespace stagecraft {

class FaultyTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  /// Accepts the n-th send and never delivers it; the n-th receive never gets its tensor.
  void drop_send(std::int64_t nth);
  void drop_receive(std::int64_t nth);
  /// Makes the n-th send, or receive, throw `error`.
  void fail_send(std::int64_t nth, Error error);
  void fail_receive(std::int64_t nth, Error error);

  /// Holds all later sends until `release_sends`, which sends them in their order. Both are called
  /// from one thread.
  void hold_sends();
  void release_sends();
  [[nodiscard]] std::int64_t sends_held() const;

  void send(Rank to, const Tag& tag, at::Tensor tensor) override;
  [[nodiscard]] Future<at::Tensor> receive(Rank from, const Tag& tag) override;
  /// Also drops the held sends.
  void close(const Error& why) override;

 private:
  using Fault = std::optional<Error>;  ///< the error to throw; empty: drop silently
  struct HeldSend {
    Rank to;
    Tag tag;
    at::Tensor tensor;
  };

  mutable std::mutex mutex_;
  std::int64_t sends_ = 0;
  std::int64_t receives_ = 0;
  std::map<std::int64_t, Fault> send_faults_;
  std::map<std::int64_t, Fault> receive_faults_;
  bool holding_ = false;
  std::vector<HeldSend> held_;
};

}  // namespace stagecraft
