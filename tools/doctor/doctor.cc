#include "stagecraft/tools/doctor/doctor.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <sstream>
#include <variant>

#include "stagecraft/actors/launch/network/hosts.h"
#include "stagecraft/actors/launch/port/file_limit.h"
#include "stagecraft/actors/launch/ways/ways.h"
#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/doctor/checks/credential_checks.h"
#include "stagecraft/tools/doctor/checks/machine_checks.h"
#include "stagecraft/tools/doctor/checks/pair_checks.h"
#include "stagecraft/tools/doctor/checks/step_checks.h"
#include "stagecraft/tools/doctor/options.h"
#include "stagecraft/tools/doctor/report.h"
#include "stagecraft/tools/doctor/run/run_diagnosis.h"
#include "stagecraft/tools/doctor/run/run_report.h"
#include "stagecraft/tools/doctor/talk/answer.h"
#include "stagecraft/tools/doctor/talk/ask_hosts.h"
#include "stagecraft/tools/doctor/talk/limits.h"

namespace stagecraft::tools {
namespace {

Round round_of(const DoctorRequest& request) {
  Round round{.hosts = {}, .ssh = {}, .interface = request.interface};
  if (request.hosts) {
    round.hosts = read_hosts(*request.hosts);
  }
  std::istringstream words(request.ssh);
  for (std::string word; words >> word;) {
    round.ssh.push_back(word);
  }
  return round;
}

/// Returns the number of workers; for a single machine, the number of its processors.
int workers_of(const Round& round, const std::vector<HostExam>& exams) {
  return round.hosts.empty() ? exams.front().facts->processors : slots_of(round.hosts);
}

void append(std::vector<Finding>& findings, std::vector<Finding> more) {
  std::ranges::move(more, std::back_inserter(findings));
}

ExitCode judge_run(const std::string& folder, bool json, Console& console) {
  const RunDiagnosis run = diagnose_run(folder);
  write_output("", json ? run_report_json(run) : run_report_text(run), console);
  return is_trouble(run.state) ? ExitCode::Failed : ExitCode::Good;
}

}  // namespace

ExitCode doctor(const std::vector<std::string>& arguments, Console& console) {
  const auto parsed = parse_doctor_options(arguments);
  if (const auto* help = std::get_if<DoctorHelp>(&parsed)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const auto& request = std::get<DoctorRequest>(parsed);
  if (request.answer) {
    return answer(console);
  }
  if (request.run) {
    return judge_run(*request.run, request.json, console);
  }
  raise_file_limit();
  std::vector<Finding> findings;
  const Round round = round_of(request);
  if (request.credentials) {
    findings = check_credentials(security::inspect_credentials(*request.credentials),
                                 *request.credentials,
                                 std::chrono::system_clock::now());
  }
  if (const auto step = batch_step()) {
    append(findings, check_step(*step, kStepPatience));
  }
  const std::vector<HostExam> exams = ask_hosts(round);
  for (const HostExam& exam : exams) {
    append(findings, check_machine(exam, workers_of(round, exams)));
  }
  append(findings, check_pairs(exams));
  write_output(
      "", request.json ? findings_json(findings, exams) : findings_text(findings), console);
  return has_problem(findings) ? ExitCode::Failed : ExitCode::Good;
}

}  // namespace stagecraft::tools
