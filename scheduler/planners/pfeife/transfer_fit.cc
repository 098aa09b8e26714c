#include "stagecraft/scheduler/planners/pfeife/transfer_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct Point {
  double size = 0;  // MiB
  double time = 0;
};

double squared_error(const TransferFit& fit, std::span<const Point> points) {
  double sum = 0;
  for (const Point& p : points) {
    const double error = p.time - fit.time_of(p.size * kMiB);
    sum += error * error;
  }
  return sum;
}

/// A line through points by least squares; flat if all points have one size.
struct Line {
  double height = 0;  // at size 0
  double slope = 0;
};

template <class Size>
Line line_through(std::span<const Point> points, Size&& size) {
  const auto count = static_cast<double>(points.size());
  double mean_size = 0, mean_time = 0;
  for (const Point& p : points) {
    mean_size += size(p) / count;
    mean_time += p.time / count;
  }
  double spread = 0, product = 0;
  for (const Point& p : points) {
    spread += (size(p) - mean_size) * (size(p) - mean_size);
    product += (size(p) - mean_size) * (p.time - mean_time);
  }
  const double slope = spread > 0 ? std::max(0.0, product / spread) : 0;
  return {mean_time - slope * mean_size, slope};
}

/// Returns the best fit with this knee.
TransferFit fit_with_knee(double knee, std::span<const Point> points) {
  const Line line =
      line_through(points, [&](const Point& p) { return std::max(0.0, p.size - knee); });
  return {line.height, line.slope, knee};
}

}  // namespace

double TransferFit::time_of(double bytes) const {
  return constant + per_mib * std::max(0.0, bytes / kMiB - knee);
}

Link TransferFit::link() const {
  return {.latency = std::max(0.0, constant - per_mib * knee),
          .bandwidth = per_mib > 0 ? kMiB / per_mib : std::numeric_limits<double>::infinity()};
}

TransferFit fit_transfers(std::span<const MeasuredTransfer> transfers) {
  if (transfers.empty()) {
    throw Error(Errc::UsageArgument, "a fit wants transfers, found none; measure some");
  }
  std::vector<Point> points;
  for (const MeasuredTransfer& t : transfers) {
    if (!(t.bytes >= 0 && t.time >= 0) || !std::isfinite(t.bytes + t.time)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("a transfer has finite bytes and time of at least 0, found {} bytes "
                              "in {}; measure it anew",
                              t.bytes,
                              t.time));
    }
    points.push_back({t.bytes / kMiB, t.time});
  }
  std::ranges::stable_sort(points, {}, &Point::size);
  // The knee of the best fit is the size of a transfer, or lies between two sizes. In the second
  // case it is where the mean of the points before meets the line through those after.
  std::vector<double> knees{0.0};
  for (std::size_t i = 0; i < points.size(); ++i) {
    knees.push_back(points[i].size);
    const std::span before = std::span(points).first(i + 1);
    const std::span behind = std::span(points).subspan(i + 1);
    if (behind.size() < 2) {
      continue;
    }
    const Line line = line_through(behind, [](const Point& p) { return p.size; });
    double mean = 0;
    for (const Point& p : before) {
      mean += p.time / static_cast<double>(before.size());
    }
    const double meet = line.slope > 0 ? (mean - line.height) / line.slope : 0;
    if (meet > points[i].size && meet < points[i + 1].size) {
      knees.push_back(meet);
    }
  }
  std::ranges::sort(knees);
  TransferFit best;
  double error = std::numeric_limits<double>::infinity();
  for (const double knee : knees) {
    const TransferFit fit = fit_with_knee(knee, points);
    const double found = squared_error(fit, points);
    if (found < error) {
      error = found;
      best = fit;
    }
  }
  return best;
}

}  // namespace stagecraft
