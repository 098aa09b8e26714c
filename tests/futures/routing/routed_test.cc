#include "stagecraft/futures/routing/routed.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/futures/collective/over_transport.h"
#include "stagecraft/tests/conformance/collective_conformance.h"
#include "stagecraft/tests/conformance/transport_conformance.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

constexpr NetworkId kNetwork{7};

/// Maps places to processes: the driver is first, rank r is at r + 1.
using Homes = std::vector<std::size_t>;

/// Holds one network of ranks, each behind its own port or sharing one: the data plane sees
/// separate processes.
class Processes {
 public:
  Processes(Homes homes, std::string bind) : homes_(std::move(homes)), bind_(std::move(bind)) {
    for (std::size_t i = 0; i <= *std::ranges::max_element(homes_); ++i) {
      start();
    }
    for (std::size_t home = 0; home < ports_.size(); ++home) {
      introduce(home);
    }
  }

  [[nodiscard]] std::shared_ptr<Transport> endpoint(Rank rank) const {
    return networks_[home_of(rank)]->endpoint(rank);
  }

  std::shared_ptr<Transport> replace(Rank rank, std::int64_t after_bytes) {
    const std::size_t home = home_of(rank);
    const std::shared_ptr<DataPort> old = ports_[home];
    CHECK(eventually([&] { return sent_by(*old) >= after_bytes; }));
    old->close();
    const PortAddress gone = old->address();
    ports_[home] = DataPort::open({.bind = bind_});
    networks_[home] = std::make_unique<RoutedNetwork>(ports_[home], kNetwork, ranks());
    for (std::size_t other = 0; other < ports_.size(); ++other) {
      if (other != home) {
        ports_[other]->forget(gone);
        place_all_of(other, home);
      }
    }
    introduce(home);
    return endpoint(rank);
  }

 private:
  [[nodiscard]] int ranks() const { return static_cast<int>(homes_.size()) - 1; }
  [[nodiscard]] std::size_t home_of(Rank rank) const {
    return homes_[static_cast<std::size_t>(rank.value + 1)];
  }

  static std::int64_t sent_by(const DataPort& port) {
    std::int64_t bytes = 0;
    for (const auto& [key, link] : port.counts().links) {
      bytes += link.bytes_sent;
    }
    return bytes;
  }

  void start() {
    ports_.push_back(DataPort::open({.bind = bind_}));
    networks_.push_back(std::make_unique<RoutedNetwork>(ports_.back(), kNetwork, ranks()));
  }

  /// Tells `home` the addresses of all others.
  void introduce(std::size_t home) {
    for (std::size_t other = 0; other < ports_.size(); ++other) {
      if (other != home) {
        place_all_of(home, other);
      }
    }
  }

  void place_all_of(std::size_t told, std::size_t home) {
    for (int rank = kDriver.value; rank < ranks(); ++rank) {
      if (home_of(Rank{rank}) == home) {
        networks_[told]->place(Rank{rank}, ports_[home]->address());
      }
    }
  }

  Homes homes_;
  std::string bind_;
  std::vector<std::shared_ptr<DataPort>> ports_;
  std::vector<std::unique_ptr<RoutedNetwork>> networks_;
};

Endpoints connect(const Homes& homes, const std::string& bind) {
  const auto processes = std::make_shared<Processes>(homes, bind);
  Endpoints ends;
  ends.driver = processes->endpoint(kDriver);
  for (int rank = 0; rank + 1 < static_cast<int>(homes.size()); ++rank) {
    ends.ranks.push_back(processes->endpoint(Rank{rank}));
  }
  ends.replace = [processes](Rank rank, std::int64_t after_bytes) {
    return processes->replace(rank, after_bytes);
  };
  return ends;
}

Endpoints each_its_own(int ranks, const std::string& bind) {
  Homes homes;
  for (int i = 0; i < ranks + 1; ++i) {
    homes.push_back(static_cast<std::size_t>(i));
  }
  return connect(homes, bind);
}

Endpoints over_tcp(int ranks) {
  return each_its_own(ranks, "tcp://127.0.0.1:*");
}

Endpoints over_ipc(int ranks) {
  return each_its_own(ranks, "ipc://*");
}

/// Puts the driver beside rank 0, ranks 1 and 2 together, then 3 and 4, and so on.
Endpoints mixed(int ranks) {
  Homes homes{0};
  for (int rank = 0; rank < ranks; ++rank) {
    homes.push_back(static_cast<std::size_t>((rank + 1) / 2));
  }
  return connect(homes, "ipc://*");
}

TEST_CASE("tensors over ZeroMQ and TCP keep the transport contract", "[futures][transport]") {
  const TransportCase& contract = GENERATE(from_range(transport_cases()));
  DYNAMIC_SECTION(contract.name) {
    contract.run(over_tcp);
  }
}

TEST_CASE("tensors over ZeroMQ and local sockets keep the transport contract",
          "[futures][transport]") {
  const TransportCase& contract = GENERATE(from_range(transport_cases()));
  DYNAMIC_SECTION(contract.name) {
    contract.run(over_ipc);
  }
}

TEST_CASE("a network of ranks here and elsewhere keeps the transport contract",
          "[futures][transport]") {
  const TransportCase& contract = GENERATE(from_range(transport_cases()));
  DYNAMIC_SECTION(contract.name) {
    contract.run(mixed);
  }
}

Members members_over(const Endpoints& ends) {
  Members members;
  for (const std::shared_ptr<Transport>& transport : ends.ranks) {
    const auto board = std::make_shared<WaitBoard>();
    members.push_back({transport, board, std::make_shared<TransportCollective>(transport, board)});
  }
  return members;
}

TEST_CASE("collectives between processes keep the contract", "[futures][collective]") {
  const CollectiveCase& contract = GENERATE(from_range(collective_cases()));
  DYNAMIC_SECTION(contract.name) {
    contract.run([](int ranks) { return members_over(mixed(ranks)); });
  }
}

TEST_CASE("ranks of one process hand tensors over without a copy, those of others do not",
          "[futures][transport]") {
  const Endpoints net = mixed(3);
  const at::Tensor sent = number(5);
  net.ranks[1]->send(Rank{2}, Tag{}, sent);
  net.ranks[1]->send(Rank{0}, Tag{}, sent);
  const auto near = net.ranks[2]->receive(Rank{1}, Tag{});
  const auto far = net.ranks[0]->receive(Rank{1}, Tag{});
  REQUIRE(near.ready());
  CHECK(near.get().const_data_ptr() == sent.const_data_ptr());
  CHECK(number_from(far) == 5);
  CHECK(far.get().const_data_ptr() != sent.const_data_ptr());
  CHECK(reinterpret_cast<std::uintptr_t>(far.get().const_data_ptr()) % 64 == 0);
}

}  // namespace
}  // namespace stagecraft
