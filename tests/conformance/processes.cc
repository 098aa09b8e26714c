#include "stagecraft/tests/conformance/processes.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/zeros.h>

#include "stagecraft/futures/routing/transport_choice.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

constexpr NetworkId kCommonNetwork{7};

std::int64_t sent_by(const DataPort& port) {
  std::int64_t bytes = 0;
  for (const auto& [key, link] : port.counts().links) {
    bytes += link.bytes_sent;
  }
  return bytes;
}

}  // namespace

Processes::Processes(Homes homes, DataPortOptions options)
    : homes_(std::move(homes)), options_(std::move(options)) {
  for (std::size_t i = 0; i <= *std::ranges::max_element(homes_); ++i) {
    start();
  }
  for (std::size_t home = 0; home < ports_.size(); ++home) {
    introduce(home);
  }
}

void Processes::begin_to_share() const {
  const Tag tag{.plan = PlanId{-1}, .epoch = kEndlessEpoch};
  const at::Tensor large = at::zeros({std::int64_t{1} << 16U}, at::kByte);
  for (int from = kDriver.value; from < ranks(); ++from) {
    for (int to = kDriver.value; to < ranks(); ++to) {
      if (home_of(Rank{from}) == home_of(Rank{to})) {
        continue;
      }
      const std::string key = ports_[home_of(Rank{to})]->address().key;
      CHECK(eventually([&] {
        endpoint(Rank{from})->send(Rank{to}, tag, large);
        (void)endpoint(Rank{to})->receive(Rank{from}, tag).get();
        return ports_[home_of(Rank{from})]->counts().links[key].bytes_shared > 0;
      }));
    }
  }
}

std::shared_ptr<Transport> Processes::endpoint(Rank rank) const {
  return networks_[home_of(rank)]->endpoint(rank);
}

std::set<std::string_view> Processes::transports() const {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const PortAddress& here = ports_[homes_[i]]->address();
      const PortAddress& there = ports_[homes_[j]]->address();
      names.insert(transport_between(here, there).name);
    }
  }
  return names;
}

std::shared_ptr<Transport> Processes::replace(Rank rank, std::int64_t after_bytes) {
  const std::size_t home = home_of(rank);
  const std::shared_ptr<DataPort> old = ports_[home];
  CHECK(eventually([&] { return sent_by(*old) >= after_bytes; }));
  old->close();
  const PortAddress gone = old->address();
  ports_[home] = DataPort::open(options_);
  networks_[home] = std::make_unique<RoutedNetwork>(ports_[home], kCommonNetwork, ranks());
  for (std::size_t other = 0; other < ports_.size(); ++other) {
    if (other != home) {
      ports_[other]->forget(gone);
      place_all_of(other, home);
    }
  }
  introduce(home);
  return endpoint(rank);
}

std::size_t Processes::home_of(Rank rank) const {
  return homes_[static_cast<std::size_t>(rank.value + 1)];
}

void Processes::start() {
  ports_.push_back(DataPort::open(options_));
  networks_.push_back(std::make_unique<RoutedNetwork>(ports_.back(), kCommonNetwork, ranks()));
}

/// Tells `home` the addresses of all others.
void Processes::introduce(std::size_t home) {
  for (std::size_t other = 0; other < ports_.size(); ++other) {
    if (other != home) {
      place_all_of(home, other);
    }
  }
}

void Processes::place_all_of(std::size_t told, std::size_t home) {
  for (int rank = kDriver.value; rank < ranks(); ++rank) {
    if (home_of(Rank{rank}) == home) {
      networks_[told]->place(Rank{rank}, ports_[home]->address());
    }
  }
}

}  // namespace stagecraft
