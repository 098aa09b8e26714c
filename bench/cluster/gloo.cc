#include "stagecraft/bench/cluster/gloo.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagecraft::bench {

void add_gloo_options(CLI::App& app, Peer& peer) {
  auto* const python = app.add_option("--peer", peer.python, "a Python with torch, for gloo");
  app.add_option("--peer-script", peer.script, "the script that measures gloo")->needs(python);
}

nlohmann::json gloo_figures(const Peer& peer) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("stagecraft-gloo-{}.json", getpid());
  fmt::print(stderr, "{}", output_of(peer, {"--json", file.string()}));
  nlohmann::json figures = nlohmann::json::parse(std::ifstream(file));
  std::filesystem::remove(file);
  return figures;
}

}  // namespace stagecraft::bench
