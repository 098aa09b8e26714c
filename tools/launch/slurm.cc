#include "stagecraft/tools/launch/slurm.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number_in(const char* name) {
  const std::string text = variable(name);
  int number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < 0) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("{} expects a whole number, as srun sets it, found \"{}\"", name, text));
  }
  return number;
}

}  // namespace

std::optional<SlurmStep> slurm_step() {
  if (variable("SLURM_PROCID").empty() || variable("SLURM_STEP_ID").empty()) {
    return std::nullopt;
  }
  return SlurmStep{
      .process = number_in("SLURM_PROCID"),
      .processes = number_in("SLURM_NTASKS"),
      .name = fmt::format("{}.{}", variable("SLURM_JOB_ID"), variable("SLURM_STEP_ID")),
      .folder = variable("SLURM_SUBMIT_DIR"),
      .node = variable("SLURMD_NODENAME")};
}

}  // namespace stagecraft::tools
