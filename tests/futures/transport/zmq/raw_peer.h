/// RawPeer speaks ZeroMQ to a data port without being one, so it can send what no port would send.
/// MutePeer listens like a port and never reads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "stagecraft/futures/transport/zmq/data_port.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

/// Its frames belong to this network.
inline constexpr NetworkId kNetwork{7};
inline constexpr Tag kTag{
    .epoch = Epoch{0}, .submission = Submission{1}, .edge = EdgeId{2}, .microbatch = Microbatch{3}};

struct KeyPair {
  std::array<char, 41> open{};
  std::array<char, 41> secret{};

  KeyPair() { REQUIRE(zmq_curve_keypair(open.data(), secret.data()) == 0); }
};

class RawPeer {
 public:
  /// Returns an address under which it could be admitted; nothing listens there.
  [[nodiscard]] PortAddress address() const { return {"tcp://127.0.0.1:1", keys_.open.data()}; }

  void connect(const DataPort& port, bool curve = true) {
    out_.set(zmq::sockopt::linger, 0);
    if (curve) {
      out_.set(zmq::sockopt::curve_serverkey, port.address().key);
      out_.set(zmq::sockopt::curve_publickey, std::string(keys_.open.data()));
      out_.set(zmq::sockopt::curve_secretkey, std::string(keys_.secret.data()));
    }
    out_.set(zmq::sockopt::reconnect_ivl, 10);
    out_.connect(port.address().endpoint);
  }

  void send(const std::vector<std::string>& parts) { REQUIRE(offer(parts)); }

  /// Returns whether ZeroMQ took the message. It takes none once the port has ended the handshake.
  bool offer(const std::vector<std::string>& parts) {
    bool taken = true;
    for (std::size_t i = 0; i < parts.size() && taken; ++i) {
      const auto more = i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
      taken = out_.send(zmq::buffer(parts[i]), more | zmq::send_flags::dontwait).has_value();
    }
    return taken;
  }

  /// Sends the first `chunk` bytes of `total`, for rank 0 from rank 2.
  void send_frame(std::uint64_t sequence, std::int64_t total, std::int64_t chunk) {
    send(frame(sequence, total, chunk));
  }

  /// Returns the parts of the message that send_frame() sends.
  static std::vector<std::string> frame(std::uint64_t sequence,
                                        std::int64_t total,
                                        std::int64_t chunk) {
    FrameHeader header;
    header.link = 1;
    header.sequence = sequence;
    header.transfer = sequence;
    header.network = kNetwork;
    header.from = Rank{2};
    header.to = Rank{0};
    header.tag = kTag;
    header.dtype = at::kByte;
    header.sizes = {total};
    header.total = total;
    header.chunk = chunk;
    return {encode_frame(header), std::string(static_cast<std::size_t>(chunk), 'x')};
  }

 private:
  KeyPair keys_;
  zmq::context_t context_;
  zmq::socket_t out_{context_, zmq::socket_type::push};
};

/// Listens with a key of its own and never reads.
class MutePeer {
 public:
  MutePeer() {
    in_.set(zmq::sockopt::linger, 0);
    in_.set(zmq::sockopt::rcvhwm, 1);
    in_.set(zmq::sockopt::rcvbuf, 4096);
    in_.set(zmq::sockopt::curve_server, true);
    in_.set(zmq::sockopt::curve_secretkey, std::string(keys_.secret.data()));
    in_.bind("tcp://127.0.0.1:*");
  }

  [[nodiscard]] PortAddress address() const {
    return {in_.get(zmq::sockopt::last_endpoint), keys_.open.data()};
  }

 private:
  KeyPair keys_;
  zmq::context_t context_;
  zmq::socket_t in_{context_, zmq::socket_type::pull};
};

}  // namespace stagecraft
