#include "stagecraft/tools/train/verify/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/max.h>
#include <ATen/ops/sub.h>
#include <fmt/format.h>

#include "stagecraft/compiler/libtorch/same_bits.h"

namespace stagecraft::tools {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

using stagecraft::same_bits;  // for tensors

constexpr double kIncomparable = std::numeric_limits<double>::infinity();

}  // namespace

Verifier::Verifier(const std::optional<std::string>& reordered, double bound) {
  if (reordered) {
    result_.reordered = *reordered;
    result_.bound = bound;
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
                          const StageOf& stage_of) {
  result_.parameters += tensors("parameter", told_parameter_, pipeline, one_process, stage_of);
}

void Verifier::buffers(const NamedTensors& pipeline,
                       const NamedTensors& one_process,
                       const StageOf& stage_of,
                       const std::set<std::string>& reordered) {
  const auto in_order = [&](NamedTensors all) {
    std::erase_if(all, [&](const auto& named) { return reordered.contains(named.first); });
    return all;
  };
  for (const auto& [name, value] : one_process) {
    if (reordered.contains(name)) {
      result_.reordered_buffers.push_back(name);
    }
  }
  result_.buffers +=
      tensors("buffer", told_buffer_, in_order(pipeline), in_order(one_process), stage_of);
}

std::int64_t Verifier::tensors(const std::string& what,
                               bool& told,
                               const NamedTensors& pipeline,
                               const NamedTensors& one_process,
                               const StageOf& stage_of) {
  if (pipeline.size() != one_process.size()) {
    differ(told,
           fmt::format("{} {}s, one process has {}", pipeline.size(), what, one_process.size()),
           0.0,
           kIncomparable);
    return 0;
  }
  const std::map<std::string, at::Tensor> others(one_process.begin(), one_process.end());
  for (const auto& [name, value] : pipeline) {
    const at::Tensor a = value.detach().cpu().contiguous();
    const auto other = others.find(name);
    const at::Tensor b =
        other == others.end() ? at::Tensor() : other->second.detach().cpu().contiguous();
    if (!b.defined() || a.sizes() != b.sizes() || a.dtype() != b.dtype()) {
      differ(told,
             fmt::format("{} {} ({}), which one process has {}",
                         what,
                         name,
                         stage_of(name),
                         b.defined() ? "in another shape or type" : "not"),
             0.0,
             kIncomparable);
    } else if (!same_bits(a, b)) {
      const at::Tensor by = at::sub(a.to(at::kDouble), b.to(at::kDouble)).abs();
      differ(told,
             fmt::format("{} {} of {} after the last step", what, name, stage_of(name)),
             by.max().item().toDouble(),
             at::div(by, b.to(at::kDouble).abs().clamp_min(1.0)).max().item().toDouble());
    }
  }
  return std::ssize(pipeline);
}

/// A NaN is within no bound.
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
