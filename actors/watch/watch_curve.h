/// WatchCurve keeps the curve of a run of any length in bounded memory.
///
/// A value; one thread at a time.
/// WC-1: it holds at most kMost points at equal distances, from the first step on, and the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft {

struct WatchPoint {
  std::int64_t step = 0;
  double loss = 0.0;
  double seconds = 0.0;
  double per_second = 0.0;  ///< WatchedRun::counted per second
};

class WatchCurve {
 public:
  static constexpr std::size_t kMost = 1024;

  void add(const WatchPoint& point) {
    last_ = point;
    if (added_++ % distance_ != 0) {
      return;
    }
    if (kept_.size() == kMost) {
      halve();
    }
    if ((added_ - 1) % distance_ == 0) {
      kept_.push_back(point);
    }
  }

  /// Returns the points, in the order of steps.
  [[nodiscard]] std::vector<WatchPoint> points() const {
    std::vector<WatchPoint> all = kept_;
    if (!all.empty() && all.back().step != last_.step) {
      all.push_back(last_);
    }
    return all;
  }

 private:
  /// Drops every other point.
  void halve() {
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) {
      kept_[i] = kept_[2 * i];
    }
    kept_.resize((kept_.size() + 1) / 2);
    distance_ *= 2;
  }

  std::vector<WatchPoint> kept_;
  WatchPoint last_;
  std::int64_t added_ = 0;
  std::int64_t distance_ = 1;
};

}  // namespace stagecraft
