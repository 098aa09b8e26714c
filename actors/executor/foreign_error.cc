#include "stagecraft/actors/executor/foreign_error.h"

#include <new>
#include <string>

#include <c10/util/Exception.h>

namespace stagecraft {
namespace {

Error out_of_memory(const std::string& what) {
  return {Errc::DeviceOutOfMemory,
          what + ": use more stages, smaller microbatches or fewer of them in flight"};
}

}  // namespace

Error foreign_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return e;
  } catch (const c10::OutOfMemoryError& e) {
    return out_of_memory(e.what_without_backtrace());
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    const bool memory = text.find("not enough memory") != std::string::npos;
    return memory ? out_of_memory(text) : Error(Errc::DeviceFailed, text);
  } catch (const std::bad_alloc&) {
    return out_of_memory("this rank ran out of memory");
  } catch (const std::exception& e) {
    return {Errc::WorkerFailed, e.what()};
  } catch (...) {
    return {Errc::WorkerFailed, "something was thrown that is no std::exception"};
  }
}

}  // namespace stagecraft
