#include "stagecraft/actors/trainer/steps/step_future.h"

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
