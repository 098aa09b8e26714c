#include "stagecraft/actors/cluster/environment_options.h"

#include <iostream>
#include <sstream>

#include "stagecraft/actors/cluster/cluster_setting.h"

namespace stagecraft {

SpawnOptions spawn_options_of_environment() {
  SpawnOptions options;
  options.tell = [](const std::string& line) { std::cerr << "stagecraft: " + line + "\n"; };
  const auto text = [](const char* name) {
    const auto word = setting_of_variable(name);
    return word ? word->text : "";
  };
  options.workers_come = text("STAGECRAFT_WORKERS") == "joining";
  options.credentials = text("STAGECRAFT_CREDENTIALS");
  options.interface = text("STAGECRAFT_INTERFACE");
  options.meeting_place = text("STAGECRAFT_MEETING_PLACE");
  options.log_dir = text("STAGECRAFT_LOG_DIR");
  std::istringstream ssh(text("STAGECRAFT_SSH"));
  for (std::string word; ssh >> word;) {
    options.ssh.push_back(word);
  }
  if (const auto file = setting_of_variable("STAGECRAFT_HOSTS")) {
    options.hosts = read_hosts(file->text);
  }
  if (const auto slots = setting_of_variable("STAGECRAFT_PER_HOST")) {
    for (Host& host : options.hosts) {
      host.slots = number_from(*slots, 1);
    }
  }
  if (const auto port = setting_of_variable("STAGECRAFT_PORT")) {
    options.port = static_cast<std::uint16_t>(number_from(*port, 0, 65535));
  }
  if (const auto ranks = setting_of_variable("STAGECRAFT_LOCAL_RANKS")) {
    options.local_ranks = number_from(*ranks, 0);
  }
  if (const auto coming = setting_of_variable("STAGECRAFT_WORKERS_COMING")) {
    options.workers_coming = number_from(*coming, 0);
  }
  if (const auto processor = setting_of_variable("STAGECRAFT_PROCESSOR")) {
    if (processor->text != "own" && processor->text != "common") {
      refuse(*processor, "own or common");
    }
    options.processor =
        processor->text == "common" ? ProcessorChoice::Common : ProcessorChoice::Own;
  }
  if (const auto seconds = setting_of_variable("STAGECRAFT_JOIN_SECONDS")) {
    options.join_deadline = std::chrono::seconds(number_from(*seconds, 1));
  }
  if (const auto seconds = setting_of_variable("STAGECRAFT_SILENCE_SECONDS")) {
    options.silence = std::chrono::seconds(number_from(*seconds, 2));
  }
  return options;
}

}  // namespace stagecraft
