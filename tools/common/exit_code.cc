#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

ExitCode exit_code(const Error& error) {
  switch (error.code()) {
    case Errc::UsageArgument:
    case Errc::UsageFile:
    case Errc::ScheduleParse:
    case Errc::ScheduleParameter:
    case Errc::CheckpointFormat:
    case Errc::CheckpointMismatch:
      return ExitCode::WrongUsage;
    default:
      return ExitCode::Failed;
  }
}

ExitCode interrupted_by(int signal) {
  return static_cast<ExitCode>(128 + signal);
}

}  // namespace stagecraft::tools
