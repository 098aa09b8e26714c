#include "stagecraft/actors/launch/port/node_guard.h"

#include <vector>

#include <caf/binary_serializer.hpp>
#include <caf/message_id.hpp>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using caf::io::basp::header;
using caf::io::basp::message_type;

caf::node_id node(std::uint32_t process) {
  caf::node_id::default_data::host_id_type host{};
  host.fill(7);
  return caf::make_node_id(process, host);
}

const caf::node_id kDriverNode = node(1), kWorkerNode = node(2), kAnother = node(3);
constexpr std::uint64_t kRequest = 5;
constexpr caf::actor_id kAsker = 11, kAsked = 22;

template <class... Ts>
std::string contents(const Ts&... values) {
  std::vector<char> bytes;
  caf::binary_serializer sink(static_cast<caf::execution_unit*>(nullptr), bytes);
  REQUIRE_FALSE(sink(values...));
  return {bytes.begin(), bytes.end()};
}

std::string basp(message_type kind,
                 std::uint64_t data,
                 caf::actor_id from,
                 caf::actor_id to,
                 const std::string& inside) {
  header head(kind, 0, static_cast<std::uint32_t>(inside.size()), data, from, to);
  return contents(head) + inside;
}

std::string handshake(const caf::node_id& of) {
  return basp(message_type::client_handshake, 0, 0, 0, contents(of));
}
std::string request(caf::actor_id from, std::uint64_t id) {
  const caf::message_id number = caf::make_message_id(id);
  return basp(message_type::direct_message, number.integer_value(), from, kAsked, "order");
}
std::string answer(caf::actor_id to, std::uint64_t id, std::size_t size = 6) {
  const caf::message_id number = caf::make_message_id(id).response_id();
  return basp(
      message_type::direct_message, number.integer_value(), kAsked, to, std::string(size, 'a'));
}
std::string watch_report(const caf::node_id& from, const caf::node_id& to) {
  return basp(message_type::monitor_message, 0, 0, kAsker, contents(from, to));
}
std::string end_report(const caf::node_id& from, const caf::node_id& to) {
  return basp(message_type::down_message, 0, kAsked, 0, contents(from, to) + "why");
}

/// Two workers' connections to one port.
struct Guards {
  const std::shared_ptr<PeerNodes> nodes = std::make_shared<PeerNodes>();
  NodeGuard first{kDriverNode, nodes}, second{kDriverNode, nodes};

  std::string_view hear(const std::string& bytes) { return first.hear("worker-0", bytes); }
  std::string_view hear_second(const std::string& bytes) { return second.hear("worker-1", bytes); }
};

TEST_CASE("what a worker says for itself is taken, however it is cut",
          "[actors][launch][hostile]") {
  const std::size_t part = GENERATE(1, 3, 31, 32, 33, 100'000);
  CAPTURE(part);
  Guards guards;
  guards.first.say(basp(message_type::server_handshake, 3, 0, 0, "driver"));
  const std::string heartbeat = basp(message_type::heartbeat, 0, 0, 0, "");
  const auto hear = [&](const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += part) {
      CHECK(guards.hear(bytes.substr(at, part)).empty());
    }
  };
  hear(handshake(kWorkerNode) + heartbeat + handshake(kWorkerNode) +
       watch_report(kWorkerNode, kDriverNode));
  CHECK(guards.nodes->worker_at(kWorkerNode) == "worker-0");
  CHECK(guards.nodes->worker_at(kAnother).empty());
  const std::string asked = request(kAsker, kRequest) + heartbeat + request(kAsker, kRequest + 1);
  for (std::size_t at = 0; at < asked.size(); at += part) {
    guards.first.say(std::string_view(asked).substr(at, part));
  }
  hear(request(9, 1) + answer(kAsker, kRequest + 1, 10'000) + answer(kAsker, kRequest) +
       end_report(kWorkerNode, kDriverNode) + heartbeat);
}

TEST_CASE("a connection speaks for one node, and a node has one certificate (NG-1)",
          "[actors][launch][hostile]") {
  Guards guards;
  SECTION("it begins with another message") {
    CHECK_FALSE(guards.hear(request(9, 1)).empty());
  }
  SECTION("it is the driver's own node") {
    CHECK_FALSE(guards.hear(handshake(kDriverNode)).empty());
  }
  SECTION("it is no node") {
    CHECK_FALSE(guards.hear(handshake(caf::node_id())).empty());
  }
  SECTION("it has more in it than a node") {
    CHECK_FALSE(
        guards.hear(basp(message_type::client_handshake, 0, 0, 0, contents(kWorkerNode) + "x"))
            .empty());
  }
  SECTION("it changes its node") {
    CHECK(guards.hear(handshake(kWorkerNode)).empty());
    CHECK_FALSE(guards.hear(handshake(kAnother)).empty());
  }
  SECTION("it takes the node of another worker") {
    CHECK(guards.hear(handshake(kWorkerNode)).empty());
    CHECK_FALSE(guards.hear_second(handshake(kWorkerNode)).empty());
    CHECK(guards.nodes->worker_at(kWorkerNode) == "worker-0");
    NodeGuard again(kDriverNode, guards.nodes);  // a second connection of the same worker
    CHECK(again.hear("worker-0", handshake(kWorkerNode)).empty());
  }
  SECTION("the node is free when its last connection has ended") {
    {
      NodeGuard gone(kDriverNode, guards.nodes);
      CHECK(gone.hear("worker-7", handshake(kAnother)).empty());
    }
    CHECK(guards.nodes->worker_at(kAnother).empty());
    CHECK(guards.hear_second(handshake(kAnother)).empty());
    CHECK(guards.nodes->worker_at(kAnother) == "worker-1");
  }
}

TEST_CASE("a worker says nothing for others, and nothing to others (NG-2)",
          "[actors][launch][hostile]") {
  Guards guards;
  REQUIRE(guards.hear(handshake(kWorkerNode)).empty());
  REQUIRE(guards.hear_second(handshake(kAnother)).empty());
  const std::string forged = GENERATE(
      basp(message_type::routed_message, 0, 9, 9, contents(kAnother, kDriverNode) + "order"),
      basp(message_type::routed_message, 0, 9, 9, contents(kWorkerNode, kAnother) + "order"),
      basp(message_type::server_handshake, 3, 0, 0, "driver"),
      watch_report(kAnother, kDriverNode),
      watch_report(kWorkerNode, kAnother),
      end_report(kAnother, kDriverNode),
      end_report(kWorkerNode, kAnother),
      basp(message_type::down_message, 0, kAsked, 0, ""),
      basp(static_cast<message_type>(77), 0, 0, 0, ""));
  CHECK_FALSE(guards.hear(forged).empty());
  CHECK(guards.hear_second(request(9, 1)).empty());
}

TEST_CASE("an answer is taken from the worker that was asked, once (NG-3)",
          "[actors][launch][hostile]") {
  Guards guards;
  REQUIRE(guards.hear(handshake(kWorkerNode)).empty());
  REQUIRE(guards.hear_second(handshake(kAnother)).empty());
  guards.first.say(request(kAsker, kRequest));
  SECTION("another worker answers") {
    CHECK_FALSE(guards.hear_second(answer(kAsker, kRequest)).empty());
    CHECK(guards.hear(answer(kAsker, kRequest)).empty());
  }
  SECTION("it answers another actor") {
    CHECK_FALSE(guards.hear(answer(kAsker + 1, kRequest)).empty());
  }
  SECTION("it answers another request") {
    CHECK_FALSE(guards.hear(answer(kAsker, kRequest + 1)).empty());
  }
  SECTION("it answers twice") {
    CHECK(guards.hear(answer(kAsker, kRequest)).empty());
    CHECK_FALSE(guards.hear(answer(kAsker, kRequest)).empty());
  }
  SECTION("it answers over another of its connections") {
    NodeGuard again(kDriverNode, guards.nodes);
    REQUIRE(again.hear("worker-0", handshake(kWorkerNode)).empty());
    CHECK(again.hear("worker-0", answer(kAsker, kRequest)).empty());
  }
}

}  // namespace
}  // namespace stagecraft
