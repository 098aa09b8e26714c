#include "stagecraft/tools/profile/profile_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/number_text.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kLargest = 10;
constexpr double kMilli = 1e3;
constexpr double kMicro = 1e6;

std::string_view name_of(RankHomes ranks) {
  return ranks == RankHomes::Threads ? "threads" : "processes";
}

std::vector<ProfileSums> all_sums(const Costs& costs) {
  std::vector<ProfileSums> all{sums_of(costs.operators, costs.samples)};
  for (const auto& [samples, operators] : costs.operators_at) {
    all.push_back(sums_of(operators, samples));
  }
  std::ranges::sort(all, {}, &ProfileSums::samples);
  return all;
}

double update_of(const Costs& costs) {
  double update = 0;
  for (const OperatorCost& cost : costs.operators) {
    update += cost.update;
  }
  return update;
}

std::string largest_text(const std::vector<OperatorCost>& operators) {
  std::vector<const OperatorCost*> sorted;
  for (const OperatorCost& cost : operators) {
    sorted.push_back(&cost);
  }
  std::ranges::stable_sort(sorted, std::ranges::greater(), &OperatorCost::time);
  sorted.resize(std::min(sorted.size(), kLargest));
  std::string text = fmt::format("{:>8}  {:<36} {:>9} {:>9} {:>9} {:>10}\n",
                                 "operator",
                                 "name",
                                 "F ms",
                                 "I ms",
                                 "W ms",
                                 "kept");
  for (const OperatorCost* cost : sorted) {
    text += fmt::format("{:>8}  {:<36} {:>9.3f} {:>9.3f} {:>9.3f} {:>10}\n",
                        fmt::format("op:{}", cost->id),
                        cost->name.substr(0, 36),
                        cost->forward * kMilli,
                        cost->backward_input * kMilli,
                        cost->backward_weight * kMilli,
                        bytes_text(cost->kept));
  }
  return text;
}

std::string sizes_text(const Costs& costs) {
  std::string text = fmt::format("{:>8} {:>10} {:>10} {:>9} {:>9} {:>9} {:>10}\n",
                                 "samples",
                                 "forward ms",
                                 "backward ms",
                                 "of it I",
                                 "W",
                                 "additions",
                                 "kept");
  for (const ProfileSums& sums : all_sums(costs)) {
    text += fmt::format("{:>8} {:>10.3f} {:>11.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>10}\n",
                        sums.samples,
                        sums.forward * kMilli,
                        sums.backward() * kMilli,
                        sums.backward_input * kMilli,
                        sums.backward_weight * kMilli,
                        sums.sums * kMilli,
                        bytes_text(sums.kept));
  }
  return text;
}

std::string link_text(const Link& link) {
  return fmt::format("{:.1f} us{}",
                     link.latency * kMicro,
                     std::isfinite(link.bandwidth)
                         ? fmt::format(" and {}/s", bytes_text(link.bandwidth))
                         : ", for any number of bytes");
}

}  // namespace

ProfileSums sums_of(const std::vector<OperatorCost>& operators, int samples) {
  ProfileSums sums{.samples = samples};
  for (const OperatorCost& cost : operators) {
    sums.forward += cost.forward;
    sums.backward_input += cost.backward_input;
    sums.backward_weight += cost.backward_weight;
    sums.sums += cost.sums;
    sums.kept += cost.kept;
  }
  return sums;
}

std::string to_text(const std::string& model, const Profile& profile, RankHomes ranks) {
  const Costs& costs = profile.costs;
  double bytes = 0, held = 0;
  for (const ParameterCost& parameter : costs.parameters) {
    bytes += parameter.bytes;
    held += parameter.held;
  }
  std::string text = fmt::format("{}: {} on {}, {}; the slowest ones on {}:\n",
                                 model,
                                 count_text(costs.operators.size(), "operator"),
                                 costs.device.name,
                                 count_text(costs.device.threads, "thread"),
                                 count_text(costs.samples, "sample"));
  text += largest_text(costs.operators) + "\nall operators, by microbatch size:\n" +
          sizes_text(costs) + "\n";
  text +=
      fmt::format("parameters: {} in {}, {} with gradients and optimizer; an update {:.3f} ms\n",
                  bytes_text(bytes),
                  costs.parameters.size(),
                  bytes_text(held),
                  update_of(costs) * kMilli);
  text += fmt::format("a transfer between {}: {}\n", name_of(ranks), link_text(costs.links.usual));
  text += fmt::format(
      "outside of operators: {:.3f} ms a task, {:.3f} ms a step; a backward in halves takes {:.2f} "
      "times as long, and {:.2f} times the kept bytes wait between the halves\n",
      costs.device.task * kMilli,
      costs.device.step * kMilli,
      costs.device.split,
      costs.device.split_bytes);
  text += fmt::format(
      "noise: {:.1f} % of a microbatch (interquartile range); {}\n",
      costs.device.noise * 100,
      profile.measured == 0
          ? std::string("all results were known, and nothing was measured")
          : fmt::format(
                "{} of {} measured now", profile.measured, profile.microbatch_seconds.size() + 2));
  return text;
}

std::string to_json(const std::string& model, const Profile& profile, RankHomes ranks) {
  const Costs& costs = profile.costs;
  nlohmann::ordered_json object{{"model", model},
                                {"operators", costs.operators.size()},
                                {"device", costs.device.name},
                                {"threads", costs.device.threads},
                                {"noise", costs.device.noise},
                                {"measured", profile.measured},
                                {"sizes", nlohmann::ordered_json::array()}};
  for (const ProfileSums& sums : all_sums(costs)) {
    object["sizes"].push_back({{"samples", sums.samples},
                               {"forward_seconds", sums.forward},
                               {"backward_input_seconds", sums.backward_input},
                               {"backward_weight_seconds", sums.backward_weight},
                               {"sum_seconds", sums.sums},
                               {"kept_bytes", number_json(sums.kept)}});
  }
  double bytes = 0, held = 0;
  for (const ParameterCost& parameter : costs.parameters) {
    bytes += parameter.bytes;
    held += parameter.held;
  }
  object["update_seconds"] = update_of(costs);
  object["parameters"] = costs.parameters.size();
  object["parameter_bytes"] = number_json(bytes);
  object["held_bytes"] = number_json(held);
  object["link"] = {{"between", name_of(ranks)}, {"latency_seconds", costs.links.usual.latency}};
  if (std::isfinite(costs.links.usual.bandwidth)) {
    object["link"]["bytes_per_second"] = costs.links.usual.bandwidth;
  }
  return command_json("profile", object);
}

}  // namespace stagecraft::tools
