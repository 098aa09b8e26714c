#include "stagecraft/actors/trainer/steps/step_future.h"

#include <fmt/format.h>

#include "stagecraft/actors/trainer/steps/kept_futures.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

const Future<StepResult>& StepFuture::future() const {
  if (!valid()) {
    throw Error(Errc::UsageArgument,
                "this StepFuture names no step: use one that Trainer::step returned and that was "
                "not moved from");
  }
  home_.require_here("this step's trainer");
  process_end::admit();
  return result_;
}

const std::vector<Future<at::Tensor>>& StepFuture::kept(std::int32_t number) const {
  (void)future();  // checks the handle
  const auto* found = kept_ == nullptr ? nullptr : kept_->find(number);
  if (found == nullptr) {
    throw Error(Errc::UsageArgument,
                number == kLossValue
                    ? "this step leaves no losses on its ranks: set CompileOptions::keep.losses"
                    : fmt::format("this step leaves no output {} of the module on its ranks: list "
                                  "it in CompileOptions::keep.outputs",
                                  number));
  }
  return *found;
}

const std::vector<Future<at::Tensor>>& StepFuture::losses() const {
  return kept(kLossValue);
}

const std::vector<Future<at::Tensor>>& StepFuture::outputs(int output) const {
  if (output < 0) {
    throw Error(Errc::UsageArgument, "outputs of a module are numbered from 0");
  }
  return kept(output);
}

bool StepFuture::ready() const {
  return future().ready();
}

bool StepFuture::wait_until(Deadline deadline) const {
  return future().wait_until(deadline);
}

StepResult StepFuture::get() const {
  try {
    return future().get();
  } catch (const Error&) {
    process_end::admit();  // parks here if the process ends: that may be the only cause
    throw;
  }
}

}  // namespace stagecraft
