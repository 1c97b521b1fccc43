#pragma once
// Runs the binary, and looks at what comes out.

#include <boost/test/unit_test.hpp>

#include <folder.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace treadle::test {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out, error;
};

inline Outcome run(const std::string& arguments) {
  const Folder folder;
  const std::string command = std::string("'") + TREADLE_CLI_PATH + "' " + arguments + " >'" + folder / "out" +
                              "' 2>'" + folder / "error" + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(folder / "out"), read(folder / "error")};
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Exit code 2, nothing on stdout, one line on stderr that holds the part.
inline void check_refused(const std::string& arguments, const std::string& part) {
  BOOST_TEST_CONTEXT(arguments) {
    const Outcome o = run(arguments);
    BOOST_TEST(o.code == 2);
    BOOST_TEST(o.out.empty());
    BOOST_TEST(std::count(o.error.begin(), o.error.end(), '\n') == 1);
    BOOST_TEST(has(o.error, part), o.error << " lacks " << part);
  }
}

}  // namespace treadle::test
