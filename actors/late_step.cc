#include "stagecraft/actors/late_step.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

constexpr std::int32_t kWaitsForNobody = -2;

/// What the rank is in; null between steps.
const Instruction* instruction_of(const StatusReply& status, const Plan& plan) {
  if (status.rank.index() >= plan.ranks.size() || status.instruction < 0) {
    return nullptr;
  }
  const auto& instructions = plan.ranks[status.rank.index()].instructions;
  const auto position = static_cast<std::size_t>(status.instruction);
  return position < instructions.size() ? &instructions[position] : nullptr;
}

std::string waiting_text(std::int32_t peer) {
  if (peer == kWaitsForNobody) {
    return "";
  }
  return peer == kDriver.value ? ", waiting for the driver"
                               : fmt::format(", waiting for rank {}", peer);
}

std::string describe(const StatusReply& status, const Plan& plan) {
  const Instruction* instruction = instruction_of(status, plan);
  if (instruction == nullptr) {
    return fmt::format("rank {} is in none of its instructions", status.rank.value);
  }
  return fmt::format("rank {} has been in \"{}\" for {:.1f} s{}",
                     status.rank.value,
                     to_string(*instruction),
                     status.seconds,
                     waiting_text(status.waiting_for));
}

ErrorContext place_of(const StatusReply& status, const Plan& plan) {
  ErrorContext place{.rank = status.rank};
  if (const Instruction* instruction = instruction_of(status, plan)) {
    place.stage = instruction->task.stage;
    place.microbatch = instruction->task.microbatch;
    place.task = to_string(*instruction);
  }
  return place;
}

}  // namespace

Error late_step(std::vector<StatusReply> silent,
                const Plan& plan,
                std::chrono::milliseconds deadline) {
  std::ranges::sort(silent, {}, &StatusReply::rank);
  std::vector<std::string> found;
  for (const StatusReply& status : silent) {
    found.push_back(describe(status, plan));
  }
  Error error(
      Errc::ClusterTimeout,
      fmt::format("the step was not done within {} ms: {}; find out what holds that rank up, "
                  "or set a longer step_deadline",
                  deadline.count(),
                  fmt::join(found, "; ")));
  const auto culprit = std::ranges::find(silent, kWaitsForNobody, &StatusReply::waiting_for);
  if (culprit != silent.end()) {
    error.with(place_of(*culprit, plan));
  }
  return error;
}

}  // namespace stagecraft
