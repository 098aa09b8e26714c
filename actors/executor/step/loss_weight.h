/// LossWeight says by how much the loss of a microbatch counts in the means of a step, from its
/// labels, if that is not its number of samples: a loss that is a mean over the tokens that are no
/// padding counts by their number.
///
///   options.loss_weight = [](const std::vector<at::Tensor>& labels) {
///     return labels[0].ne(kPadding).sum().item<double>();
///   };
///
/// The maker of a Trainer, and of a Reference, gives it. It is called once for each microbatch: by
/// a Trainer on its caller's thread, before a batch is sent; by a Reference on the thread of its
/// steps.
/// LM-1: the weights are relative to that of the first microbatch of an update (PT-2). So loss and
///       gradient of an update are those of the mean over all that its microbatches count.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

struct Parts;
class StageGraph;

/// Returns a number above 0. `labels`: the microbatch's.
using LossWeight = std::function<double(const std::vector<at::Tensor>& labels)>;

/// Checks that the stages of a program can have it.
/// Errors: UsageArgument if they take microbatches of different sizes.
void check_loss_weight(const LossWeight& weight, const StageGraph& stages);

/// Returns what each part counts; 0 for a part that weighs 0, because it repeats samples.
/// Errors: UsageArgument for a number that is no weight; exceptions of `weight`.
[[nodiscard]] std::vector<double> loss_counts(const LossWeight& weight, const Parts& parts);

/// Returns the weights of these parts relative to `unit`; empty if all are 1.
[[nodiscard]] std::vector<double> relative_weights(std::vector<double> counts, double unit);

}  // namespace stagecraft
