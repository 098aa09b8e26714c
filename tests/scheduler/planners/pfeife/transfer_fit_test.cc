#include "stagecraft/scheduler/planners/pfeife/transfer_fit.h"

#include <limits>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

std::vector<MeasuredTransfer> transfers_of(const TransferFit& fit,
                                           const std::vector<double>& sizes,
                                           double noise = 0) {
  std::vector<MeasuredTransfer> transfers;
  for (const double mib : sizes) {
    const double sign = transfers.size() % 2 == 0 ? 1 : -1;
    transfers.push_back({mib * kMiB, fit.time_of(mib * kMiB) + sign * noise});
  }
  return transfers;
}

TEST_CASE("a transfer takes a constant up to the knee, then so much per MiB",
          "[scheduler][planners]") {
  const TransferFit fit{.constant = 0.05, .per_mib = 0.02, .knee = 0.5};
  CHECK(fit.time_of(0.25 * kMiB) == 0.05);
  CHECK(fit.time_of(10 * kMiB) == Catch::Approx(0.24));
  CHECK(fit.link().time_of(10 * kMiB) == Catch::Approx(0.24));
}

TEST_CASE("the fit finds what transfers were made of", "[scheduler][planners]") {
  const TransferFit made{.constant = 0.05, .per_mib = 0.02, .knee = 0.5};
  const std::vector<double> sizes{0.04, 0.15, 0.3, 0.6, 1.2, 2.4, 4.9, 10, 20, 40};
  const TransferFit fit = fit_transfers(transfers_of(made, sizes));
  CHECK(fit.constant == Catch::Approx(0.05));
  CHECK(fit.per_mib == Catch::Approx(0.02));
  CHECK(fit.knee == Catch::Approx(0.5));
  const TransferFit noisy = fit_transfers(transfers_of(made, sizes, 0.001));
  CHECK(noisy.constant == Catch::Approx(0.05).margin(0.002));
  CHECK(noisy.per_mib == Catch::Approx(0.02).margin(0.0002));
}

TEST_CASE("no knee: a line from the start, or the same time for all", "[scheduler][planners]") {
  const TransferFit line = fit_transfers(transfers_of({0.01, 0.02, 0}, {1, 2, 3, 4}));
  CHECK(line.time_of(2.5 * kMiB) == Catch::Approx(0.06));
  const TransferFit flat = fit_transfers(transfers_of({0.01, 0, 0}, {1, 2, 3}));
  CHECK(flat.time_of(100 * kMiB) == Catch::Approx(0.01));
  CHECK(fit_transfers(transfers_of({0.01, 0, 0}, {1})).time_of(0) == Catch::Approx(0.01));
}

TEST_CASE("times that fall with the size count as noise", "[scheduler][planners]") {
  const std::vector<MeasuredTransfer> falling{{kMiB, 3}, {2 * kMiB, 2}, {3 * kMiB, 1}};
  const TransferFit fit = fit_transfers(falling);
  CHECK(fit.per_mib == 0);
  CHECK(fit.constant == Catch::Approx(2));
}

TEST_CASE("a fit of nothing, or of what is no measurement, is refused", "[scheduler][planners]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<MeasuredTransfer>& wrong :
       {std::vector<MeasuredTransfer>{}, {{-1, 1}}, {{1, -1}}, {{1, nan}}}) {
    CHECK_FALSE(refusal([&] { (void)fit_transfers(wrong); }).empty());
  }
}

}  // namespace
}  // namespace stagecraft
