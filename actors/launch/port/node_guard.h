/// NodeGuard lets the worker at the other end of a connection speak for itself alone.
///
/// CAF 0.17 takes messages from any peer in any other's name: it passes messages on between its
/// peers, accepts several nodes over one connection, moves a node to another connection, and takes
/// an answer from a peer that was not asked. A guard reads the headers of both directions, after
/// TLS has decrypted them. Each TlsSession has one, on the thread of CAF's loop.
/// NG-1: a connection speaks for one node, and a node belongs to one certificate as long as it has
///       a connection.
/// NG-2: nothing is passed on: sender and receiver are the two ends of the connection, also of
///       reports that an actor is watched or has ended.
/// NG-3: an answer comes from the node that was asked.
/// Source: the protocol BASP of CAF 0.17.6, libcaf_io/src/io/basp/instance.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <caf/io/basp/header.hpp>
#include <caf/node_id.hpp>

namespace stagecraft {

/// PeerNodes knows the certificate of every connected node. All connections of a port share it. The
/// mutex guards the table: admissions ask on threads of actors.
class PeerNodes {
 public:
  struct Node {
    std::string worker;                                       ///< the name in its certificate
    std::set<std::pair<caf::actor_id, std::uint64_t>> asked;  ///< who asked, and the request's id
  };

  /// Returns the node, which stays entered as long as the result lives; null if another worker has
  /// it.
  [[nodiscard]] std::shared_ptr<Node> enter(const caf::node_id& node, const std::string& worker);

  /// Returns the name in the certificate of the connected node; empty if it is not connected.
  [[nodiscard]] std::string worker_at(const caf::node_id& node) const;

  /// Returns how many connections were refused, with this one.
  [[nodiscard]] std::int64_t count_refusal() { return ++refused_; }

 private:
  std::atomic<std::int64_t> refused_{0};
  mutable std::mutex mutex_;
  std::map<caf::node_id, std::weak_ptr<Node>> nodes_;
};

/// BaspReader finds the headers in a stream of BASP.
class BaspReader {
 public:
  /// The longest beginning of a message's contents that is kept: the nodes are in it.
  static constexpr std::size_t kHead = 512;

  /// Takes bytes up to the end of the next header and the beginning of its contents, and removes
  /// them. Returns whether that is complete now, in header() and head().
  [[nodiscard]] bool take(std::string_view& bytes);
  [[nodiscard]] const caf::io::basp::header& header() const { return header_; }
  [[nodiscard]] const std::string& head() const { return head_; }

 private:
  std::string read_;  ///< of the header that is not complete
  caf::io::basp::header header_{};
  std::string head_;
  std::size_t head_left_ = 0, rest_left_ = 0;
};

class NodeGuard {
 public:
  /// `here`: the node of this process.
  NodeGuard(caf::node_id here, std::shared_ptr<PeerNodes> nodes)
      : here_(std::move(here)), nodes_(std::move(nodes)) {}

  /// Takes bytes that the peer has sent. Returns why the connection has to end; empty if it goes
  /// on. `worker`: the name in the peer's certificate.
  [[nodiscard]] std::string_view hear(const std::string& worker, std::string_view bytes);
  /// Takes bytes that go to the peer.
  void say(std::string_view bytes);

  [[nodiscard]] std::int64_t count_refusal() const { return nodes_->count_refusal(); }

 private:
  [[nodiscard]] std::string_view judge(const std::string& worker);
  [[nodiscard]] std::string_view judge_handshake(const std::string& worker);
  [[nodiscard]] bool is_between_ends() const;
  [[nodiscard]] bool is_asked();

  const caf::node_id here_;
  const std::shared_ptr<PeerNodes> nodes_;
  BaspReader heard_, said_;
  caf::node_id there_;
  std::shared_ptr<PeerNodes::Node> node_;  ///< null before the handshake
};

}  // namespace stagecraft
