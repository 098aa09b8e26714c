#include "stagecraft/actors/executor/step/foreign_error.h"

#include <c10/util/Exception.h>

#include "stagecraft/compiler/libtorch/lack_of_memory.h"

namespace stagecraft {

Error foreign_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    if (const auto lack =
            lack_of_memory(e, "use more stages, smaller microbatches or fewer of them in flight")) {
      return *lack;
    }
    const auto* torch = dynamic_cast<const c10::Error*>(&e);
    return torch != nullptr ? Error(Errc::DeviceFailed, torch->what_without_backtrace())
                            : Error(Errc::WorkerFailed, e.what());
  } catch (...) {
    return {Errc::WorkerFailed, "an exception was thrown that is not a std::exception"};
  }
}

}  // namespace stagecraft
