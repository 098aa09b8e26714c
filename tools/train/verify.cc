#include "stagecraft/tools/train/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/max.h>
#include <ATen/ops/sub.h>
#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

constexpr double kIncomparable = std::numeric_limits<double>::infinity();

}  // namespace

Verifier::Verifier(const std::optional<std::string>& reordered) {
  if (reordered) {
    result_.reordered = *reordered;
    result_.bound = kReorderedBound;
  }
}

void Verifier::step(std::int64_t step,
                    const std::vector<double>& pipeline,
                    const std::vector<double>& one_process,
                    double pipeline_mean,
                    double one_process_mean) {
  ++result_.losses;
  if (pipeline.size() != one_process.size()) {
    differ(told_loss_,
           fmt::format(
               "step {}: {} losses, one process has {}", step, pipeline.size(), one_process.size()),
           0.0,
           kIncomparable);
    return;
  }
  for (std::size_t m = 0; m < pipeline.size(); ++m) {
    compare_losses(
        fmt::format("step {}, microbatch {}: loss", step, m), pipeline[m], one_process[m]);
  }
  compare_losses(fmt::format("step {}: mean loss", step), pipeline_mean, one_process_mean);
}

void Verifier::compare_losses(const std::string& where, double pipeline, double one_process) {
  if (!same_bits(pipeline, one_process)) {
    const double by = std::abs(pipeline - one_process);
    differ(told_loss_,
           fmt::format("{} {:.17g}, one process has {:.17g}", where, pipeline, one_process),
           by,
           by / std::max(1.0, std::abs(one_process)));
  }
}

void Verifier::parameters(const NamedTensors& pipeline,
                          const NamedTensors& one_process,
                          const std::function<std::string(const std::string&)>& stage_of) {
  if (pipeline.size() != one_process.size()) {
    differ(told_parameter_,
           fmt::format("{} parameters, one process has {}", pipeline.size(), one_process.size()),
           0.0,
           kIncomparable);
    return;
  }
  for (std::size_t i = 0; i < pipeline.size(); ++i) {
    ++result_.parameters;
    const auto& [name, value] = pipeline[i];
    const at::Tensor a = value.detach().cpu().contiguous();
    const at::Tensor b = one_process[i].second.detach().cpu().contiguous();
    const bool same_kind =
        name == one_process[i].first && a.sizes() == b.sizes() && a.dtype() == b.dtype();
    if (!same_kind) {
      differ(told_parameter_,
             fmt::format("parameter {} ({}), one process has {} there",
                         name,
                         stage_of(name),
                         one_process[i].first),
             0.0,
             kIncomparable);
    } else if (!same_bits(a, b)) {
      const at::Tensor by = at::sub(a, b).abs();
      differ(told_parameter_,
             fmt::format("parameter {} of {} after the last step", name, stage_of(name)),
             by.max().item().toDouble(),
             at::div(by, b.abs().clamp_min(1.0)).max().item().toDouble());
    }
  }
}

/// Not-a-number is within no bound.
void Verifier::differ(bool& told, const std::string& where, double by, double relative) {
  result_.bit_equal = false;
  result_.good = result_.good && !result_.reordered.empty() && relative <= result_.bound;
  result_.max_abs_diff = std::max(result_.max_abs_diff, by);
  if (!told) {
    told = true;
    result_.first_difference += (result_.first_difference.empty() ? "" : "; ") + where;
  }
}

}  // namespace stagecraft::tools
