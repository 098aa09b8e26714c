#include "stagecraft/actors/profile/link_costs.h"

#include <cmath>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Approx;

TEST_CASE("a line is found that all transfers lie on", "[profile][links]") {
  std::vector<TransferTime> transfers;
  for (const double bytes : {4e4, 1.6e5, 1e6, 4e7}) {
    transfers.push_back({bytes, 1e-5 + bytes / 2e9});
  }
  const Link link = fit_link(transfers);
  CHECK(link.latency == Approx(1e-5));
  CHECK(link.bandwidth == Approx(2e9));
}

TEST_CASE("time that does not grow with bytes leaves the bandwidth infinite", "[profile][links]") {
  const std::vector<TransferTime> level{{1e3, 2e-5}, {1e6, 2e-5}};
  CHECK(fit_link(level).latency == Approx(2e-5));
  CHECK(std::isinf(fit_link(level).bandwidth));
  const std::vector<TransferTime> falling{{1e3, 3e-5}, {1e6, 2e-5}};
  CHECK(std::isinf(fit_link(falling).bandwidth));
  CHECK(fit_link(falling).latency > 2e-5);
  CHECK(fit_link(falling).latency < 3e-5);
  const std::vector<TransferTime> pointers{{1e3, 3e-6}, {6e7, 1e-5}};  // 8.6 TB/s
  CHECK(std::isinf(fit_link(pointers).bandwidth));
  CHECK(fit_link(pointers).latency > 3e-6);
  CHECK(fit_link(pointers).latency < 1e-5);
  const std::vector<TransferTime> copies{{1e3, 3e-6}, {6e7, 1.2e-3}};  // 50 GB/s
  CHECK(std::isfinite(fit_link(copies).bandwidth));
  const std::vector<TransferTime> one{{1e3, 3e-5}};
  CHECK(fit_link(one) == Link{.latency = 3e-5});
}

TEST_CASE("a latency is never below nothing", "[profile][links]") {
  const std::vector<TransferTime> steep{{1e3, 1e-6}, {1e4, 2e-5}};
  CHECK(fit_link(steep).latency == 0);
  CHECK(fit_link(steep).bandwidth > 0);
  CHECK(std::isfinite(fit_link(steep).bandwidth));
}

TEST_CASE("transfers of every size are timed, between threads and through ports",
          "[profile][links]") {
  const RankHomes homes = GENERATE(RankHomes::Threads, RankHomes::Processes);
  const std::vector<TransferTime> transfers = measure_transfers(homes);
  REQUIRE(transfers.size() > 5);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    CHECK(transfers[i].seconds > 0);
    CHECK(transfers[i].bytes <= kLargestTransfer);
    CHECK((i == 0 || transfers[i].bytes > transfers[i - 1].bytes));
  }
}

}  // namespace
}  // namespace stagecraft
