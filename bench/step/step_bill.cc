#include "stagecraft/bench/step/step_bill.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace stagecraft::bench {
namespace {

constexpr std::array<std::string_view, kParts> kNames{"matrix products",
                                                      "attention",
                                                      "other operators",
                                                      "allocator",
                                                      "accumulate",
                                                      "update",
                                                      "runtime",
                                                      "waiting"};

// These operators compute; the operators that call them have names of their own.
constexpr std::array kProducts{"aten::mm",
                               "aten::addmm",
                               "aten::bmm",
                               "aten::baddbmm",
                               "aten::mv",
                               "aten::addmv",
                               "aten::mkldnn_convolution",
                               "aten::_slow_conv2d_forward",
                               "aten::_slow_conv2d_backward",
                               "aten::convolution_backward"};

constexpr double kRounding = 1e-9;  // tolerance for sums of seconds

std::string cell(double seconds, double of) {
  return fmt::format("{:>10.1f} {:>5.1f} %", seconds * 1e3, 100.0 * seconds / of);
}

}  // namespace

std::string_view name_of(Part part) {
  return kNames[static_cast<std::size_t>(part)];
}

Part part_of(std::string_view name) {
  if (std::ranges::find(kProducts, name) != kProducts.end()) {
    return Part::MatrixProducts;
  }
  if (name.starts_with("aten::_scaled_dot_product") ||
      name.starts_with("aten::scaled_dot_product")) {
    return Part::Attention;
  }
  return name.starts_with("aten::") ? Part::OtherOperators : Part::Runtime;
}

double PartSeconds::sum() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
}

PartSeconds& PartSeconds::operator+=(const PartSeconds& other) {
  for (std::size_t i = 0; i < kParts; ++i) {
    seconds_[i] += other.seconds_[i];
  }
  return *this;
}

PartSeconds PartSeconds::operator/(double by) const {
  PartSeconds result = *this;
  for (double& seconds : result.seconds_) {
    seconds /= by;
  }
  return result;
}

PartSeconds parted(double seconds, PartSeconds known) {
  const double claimed = known.sum();
  if (known[Part::Runtime] != 0.0 || claimed > seconds + kRounding) {
    throw std::invalid_argument(
        fmt::format("expected parts of a step of {:.6f} s without its runtime, found {:.6f} s",
                    seconds,
                    claimed));
  }
  known[Part::Runtime] = std::max(0.0, seconds - claimed);
  return known;
}

void StepBill::add(const std::vector<PartSeconds>& ranks) {
  sums_.resize(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    sums_[r] += ranks[r];
  }
  ++steps_;
}

PartSeconds StepBill::of(std::size_t rank) const {
  return sums_[rank] / steps_;
}

PartSeconds StepBill::in_all() const {
  PartSeconds all;
  for (std::size_t r = 0; r < sums_.size(); ++r) {
    all += of(r);
  }
  return all;
}

double StepBill::step() const {
  return in_all().sum() / static_cast<double>(ranks());
}

std::string table_of(const StepBill& bill) {
  const PartSeconds all = bill.in_all();
  const bool has_sum = bill.ranks() > 1;
  std::string text = fmt::format("  {:16}", "ms a step");
  for (std::size_t r = 0; r < bill.ranks(); ++r) {
    text += fmt::format("{:>18}", fmt::format("rank {}", r));
  }
  text += has_sum ? fmt::format("{:>18}\n", "in all") : "\n";
  const auto line = [&](std::string_view name, const auto& seconds_of) {
    text += fmt::format("  {:16}", name);
    for (std::size_t r = 0; r < bill.ranks(); ++r) {
      text += cell(seconds_of(bill.of(r)), bill.step());
    }
    if (has_sum) {
      text += cell(seconds_of(all), all.sum());
    }
    text += "\n";
  };
  for (std::size_t p = 0; p < kParts; ++p) {
    const auto part = static_cast<Part>(p);
    line(name_of(part), [&](const PartSeconds& of) { return of[part]; });
  }
  line("step", [](const PartSeconds& of) { return of.sum(); });
  return text;
}

std::string shares_of(const StepBill& bill) {
  const PartSeconds all = bill.in_all();
  std::string text;
  for (std::size_t p = 0; p < kParts; ++p) {
    const auto part = static_cast<Part>(p);
    text += fmt::format(
        "{}{} {:.1f} %", p == 0 ? "" : ", ", name_of(part), 100.0 * all[part] / all.sum());
  }
  return text;
}

}  // namespace stagecraft::bench
