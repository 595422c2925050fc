import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.common.util.ReflectionUtils;
import org.apache.hudi.config.HoodieLockConfig;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/**
 * Holds locks with the providers of the JVM. Arguments: class name of the provider, then key=value options.
 * Commands, one a line: `try MILLISECONDS` answers true, false or the name of an error; `unlock` and `close` answer ok.
 * An answer begins with `= `; other lines are logs.
 */
public final class LockJudge {
  public static void main(String[] arguments) throws Exception {
    Properties options = new Properties();
    for (int i = 1; i < arguments.length; i++) {
      String[] pair = arguments[i].split("=", 2);
      options.setProperty(pair[0], pair[1]);
    }
    LockConfiguration configuration =
        new LockConfiguration(HoodieLockConfig.newBuilder().fromProperties(options).build().getProps());
    StorageConfiguration<?> storage = new HadoopStorageConfiguration(new Configuration());
    LockProvider<?> lock = null;
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("= ready");
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      String answer = "ok";
      try {
        if (line.startsWith("try ")) {
          if (lock == null) {
            Class<?>[] types = {LockConfiguration.class, StorageConfiguration.class};
            lock = (LockProvider<?>) ReflectionUtils.loadClass(arguments[0], types, configuration, storage);
          }
          answer = String.valueOf(lock.tryLock(Long.parseLong(line.substring(4)), TimeUnit.MILLISECONDS));
        } else if (line.equals("unlock")) {
          lock.unlock();
        } else {
          lock.close();
          lock = null;
        }
      } catch (Throwable error) {
        answer = error.getClass().getSimpleName() + ": " + String.valueOf(error.getMessage()).replace('\n', ' ');
      }
      System.out.println("= " + answer);
    }
    System.exit(0);
  }
}
